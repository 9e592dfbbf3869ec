"""Let the teacher reason several times on every training note, by sampling, and parse what it says.

Inputs: --model, --config (the teacher's), --label-space, --tokenizer, --examples.
Output: --samples (samples.parquet: columns of traces.parquet, and draw, from 1).
Parameters: seed, distil.morsd.samples, distil.morsd.temperature, traces.early_tokens,
traces.max_new_tokens, traces.batch_size.
"""

import argparse

import torch

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.samples import draw_traces, write_samples
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "label-space", "tokenizer", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--samples", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples", split="training")
    samples = draw_traces(
        load_model(args.model, args.config),
        read_examples(args.examples, "training"),
        load_tokenizer(args.tokenizer),
        read_label_space(args.label_space),
        draws=p["distil.morsd.samples"],
        temperature=p["distil.morsd.temperature"],
        seed=p["seed"],
        early_tokens=p["traces.early_tokens"],
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
    )
    write_samples(args.samples, samples)


if __name__ == "__main__":
    main()

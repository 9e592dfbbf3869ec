"""Let the teacher reason on every note, greedily, and parse what it writes.

Inputs: --model (weights), --config, --label-space, --tokenizer, --examples.
Output: --traces (Parquet, all splits).
Parameters: traces.early_tokens, traces.max_new_tokens, traces.batch_size.
"""

import argparse

import torch

from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.generate import generate_traces
from mechdistill.traces.store import write_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "label-space", "tokenizer", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--traces", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples")

    traces = generate_traces(
        load_model(args.model, args.config),
        read_examples(args.examples),
        load_tokenizer(args.tokenizer),
        read_label_space(args.label_space),
        early_tokens=p["traces.early_tokens"],
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
        what="teacher trace",
    )
    write_traces(args.traces, traces)


if __name__ == "__main__":
    main()

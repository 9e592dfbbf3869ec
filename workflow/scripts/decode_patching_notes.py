"""Let a student write its reasoning for notes on which its heads are found anew, greedily.

Arguments: --model, --config (weights and configuration), --tokenizer, --label-space, --examples.
Output: --traces (of the first patching and the first ranking notes).
Parameters: evaluate.recovery_notes, traces.early_tokens, traces.max_new_tokens, traces.batch_size.
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
    for name in ("model", "config", "tokenizer", "label-space", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--traces", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space", "examples")
    examples = [
        example
        for split in ("ranking", "patching")
        for example in read_examples(args.examples, split)[: p["evaluate.recovery_notes"]]
    ]
    traces = generate_traces(
        load_model(args.model, args.config),
        examples,
        load_tokenizer(args.tokenizer),
        read_label_space(args.label_space),
        early_tokens=p["traces.early_tokens"],
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
        what="student trace",
    )
    write_traces(args.traces, traces)


if __name__ == "__main__":
    main()

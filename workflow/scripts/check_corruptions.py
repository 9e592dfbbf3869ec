"""Check the twins: what each corruption does to margins and to what the teacher writes, unpatched.

Inputs: teacher weights and configuration, traces, examples, twins, label space, tokenizer.
Outputs: manipulation.parquet (one row a phase, twin, example and metric).
Parameters: traces.early_tokens, traces.max_new_tokens, traces.batch_size, text_encoder,
patching.branches_per_pass.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.one_world import check_arguments
from mechdistill.data.twins import read_twins
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.manipulation import check_twins
from mechdistill.patching.pairs import eligible_traces
from mechdistill.patching.reader import Reader
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "examples", "twins", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--manipulation", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "traces", "twins", split="patching"
    )
    examples = read_examples(args.examples, "patching")
    reader = Reader.from_files(
        examples, args.label_space, args.tokenizer, p["text_encoder"], p["traces.early_tokens"]
    )
    table = check_twins(
        load_model(args.model, args.config),
        eligible_traces(read_traces(args.traces, "patching"), examples),
        read_twins(args.twins),
        reader,
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["traces.batch_size"],
        branches_per_pass=p["patching.branches_per_pass"],
    )
    write_table(args.manipulation, table)


if __name__ == "__main__":
    main()

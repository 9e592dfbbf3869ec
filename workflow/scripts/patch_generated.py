"""Patch ranked heads while the teacher writes; read Focus and Confusion, and what was decided.

Inputs: teacher weights and configuration, traces, examples, twins, label space, tokenizer,
rankings.
Outputs: generated.parquet (one row a condition, site, direction, example and metric: in phase 1
focus and region_recall, in phase 2 confusion and near_miss_rate).
Parameters: patching.generated_examples, patching.generated_bins, patching.random_draws,
patching.seed, patching.batch_size, traces.early_tokens, traces.max_new_tokens, text_encoder.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.one_world import check_arguments
from mechdistill.data.twins import read_twins
from mechdistill.models.loading import load_model
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.patching.conditions import plan
from mechdistill.patching.generated import patch_design
from mechdistill.patching.pairs import eligible_traces
from mechdistill.patching.reader import Reader
from mechdistill.traces.store import read_traces

INPUTS = ("model", "config", "traces", "examples", "twins", "label-space", "tokenizer", "rankings")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in INPUTS:
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--generated", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, *INPUTS[1:], split="patching")
    examples = read_examples(args.examples, "patching")
    # of those that show both phases: a weak teacher's first few may show none
    traces = eligible_traces(read_traces(args.traces, "patching"), examples)
    reader = Reader.from_files(
        examples, args.label_space, args.tokenizer, p["text_encoder"], p["traces.early_tokens"]
    )
    rankings, size = read_table(args.rankings), layers_and_heads(args.config)
    bins, draws = p["patching.generated_bins"], p["patching.random_draws"]
    table = patch_design(
        load_model(args.model, args.config),
        traces[: p["patching.generated_examples"]],
        read_twins(args.twins),
        plan(rankings, size, bins=bins, draws=draws, seed=p["patching.seed"]),
        reader,
        max_new_tokens=p["traces.max_new_tokens"],
        batch_size=p["patching.batch_size"],
    )
    write_table(args.generated, table)


if __name__ == "__main__":
    main()

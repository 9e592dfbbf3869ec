"""Patch cumulative bins of ranked heads and their controls; read the margin at decision events.

Inputs: teacher weights and configuration, traces, examples, twins, tokenizer, rankings.
Outputs: margin.parquet (one row a condition, site, direction, example and metric).
Parameters: patching.bins, patching.random_draws, patching.seed, patching.branches_per_pass.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.twins import read_twins
from mechdistill.models.loading import load_model
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.patching.conditions import plan
from mechdistill.patching.margins import patch_margins
from mechdistill.patching.pairs import eligible_traces
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "examples", "twins", "tokenizer", "rankings"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--margin", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args, "config", "tokenizer", "examples", "traces", "twins", "rankings", split="patching"
    )
    traces = eligible_traces(
        read_traces(args.traces, "patching"), read_examples(args.examples, "patching")
    )
    rankings, size = read_table(args.rankings), layers_and_heads(args.config)
    bins, draws = p["patching.bins"], p["patching.random_draws"]
    table = patch_margins(
        load_model(args.model, args.config),
        traces,
        read_twins(args.twins),
        plan(rankings, size, bins=bins, draws=draws, seed=p["patching.seed"]),
        load_tokenizer(args.tokenizer),
        branches_per_pass=p["patching.branches_per_pass"],
    )
    write_table(args.margin, table)


if __name__ == "__main__":
    main()

"""Ablate growing sets of heads at decisions, and all heads but them, on notes that ranked none.

Inputs: teacher weights and configuration, traces, events, ablation.parquet (single heads; a half of
its notes ranks them), tokenizer.
Outputs: head_sets.parquet (one row a kind of decision, condition and example of the other half).
Parameters: patching.bins, patching.random_draws, patching.seed, patching.branches_per_pass.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.head_sets import ablate_sets
from mechdistill.patching.null_events import EVENTS
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "events", "ablation", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--sets", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer")
    sets = ablate_sets(
        load_model(args.model, args.config),
        read_traces(args.traces),
        read_table(args.events, EVENTS, may_be_empty=True),
        read_table(args.ablation, may_be_empty=True),
        split="patching",
        reference="ranking",
        bins=p["patching.bins"],
        draws=p["patching.random_draws"],
        seed=p["patching.seed"],
        pad_id=load_tokenizer(args.tokenizer).pad_token_id,
        branches_per_pass=p["patching.branches_per_pass"],
    )
    write_table(args.sets, sets)


if __name__ == "__main__":
    main()

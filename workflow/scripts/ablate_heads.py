"""Ablate one head at a time at the teacher's decisions, and where nothing is decided.

Inputs: teacher weights and configuration, traces, events, tokenizer.
Outputs: ablation.parquet (one row a kind of decision or null, head and example).
Parameters: patching.null_draws, patching.seed, patching.branches_per_pass, heads.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.head_ablation import Options, ablate_heads
from mechdistill.patching.null_events import EVENTS
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "events", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--ablation", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer")
    ablation = ablate_heads(
        load_model(args.model, args.config),
        read_traces(args.traces),
        read_table(args.events, EVENTS, may_be_empty=True),
        split="patching",
        reference="ranking",
        options=Options(
            draws=p["patching.null_draws"],
            seed=p["patching.seed"],
            pad_id=load_tokenizer(args.tokenizer).pad_token_id,
            batch_size=p["heads.batch_size"],
            branches_per_pass=p["patching.branches_per_pass"],
        ),
    )
    write_table(args.ablation, ablation)


if __name__ == "__main__":
    main()

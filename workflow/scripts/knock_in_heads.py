"""Put outputs of growing sets of heads at one note's decision in place at another note's.

Inputs: teacher weights and configuration, traces, events, ablation.parquet (single heads; a half of
its notes ranks them), label space, tokenizer.
Outputs: --knock-in (one row a kind of decision, pair of notes of the other half and condition),
--pairs (how many notes and pairs there are of each kind).
Parameters: patching.bins, patching.random_draws, patching.null_draws (donors a recipient),
patching.seed, patching.branches_per_pass.
"""

import argparse

import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.donor_pairs import EVENTS
from mechdistill.patching.knock_in_sweep import knock_in_sets
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "events", "ablation", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("knock-in", "pairs"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "label-space")
    rows, pairs = knock_in_sets(
        load_model(args.model, args.config),
        read_traces(args.traces),
        read_table(args.events, EVENTS, may_be_empty=True),
        read_table(args.ablation, may_be_empty=True),
        read_label_space(args.label_space),
        split="patching",
        bins=p["patching.bins"],
        draws=p["patching.random_draws"],
        donors=p["patching.null_draws"],
        seed=p["patching.seed"],
        pad_id=load_tokenizer(args.tokenizer).pad_token_id,
        branches_per_pass=p["patching.branches_per_pass"],
    )
    write_table(args.knock_in, rows)
    write_table(args.pairs, pairs)


if __name__ == "__main__":
    main()

"""Patch one head at a time and read the margin at decision events of the teacher-forced trace.

Inputs: teacher weights and configuration, traces, examples, twins, tokenizer.
Outputs: single_heads.parquet (one row a head, site, direction and event).
Parameters: patching.branches_per_pass.
"""

import argparse

import pandas as pd
import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.twins import read_twins
from mechdistill.models.loading import load_model
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.patching.conditions import head_masks, heads_of, single_heads
from mechdistill.patching.effects import single_head_table
from mechdistill.patching.margin_sweep import sweep_margins
from mechdistill.patching.pairs import DESIGN, SHAM, eligible_traces, make_pairs
from mechdistill.progress import track
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "examples", "twins", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--single-heads", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "examples", "traces", "twins", split="patching")
    model = load_model(args.model, args.config)
    tokenizer = load_tokenizer(args.tokenizer)
    traces = eligible_traces(
        read_traces(args.traces, "patching"), read_examples(args.examples, "patching")
    )
    twins = read_twins(args.twins)
    size = layers_and_heads(args.config)
    conditions = single_heads(heads_of(*size))
    masks = head_masks([c.heads for c in conditions], *size)
    tables = []
    # the sham has no gap of which a head could have a share
    corruptions = [(twin, phase) for twin, phase in DESIGN if twin != SHAM]
    for twin, phase in track(corruptions, "twin and phase"):
        effects = sweep_margins(
            model,
            make_pairs(traces, twins, twin, tokenizer),
            phase,
            masks,
            pad_id=tokenizer.pad_token_id,
            branches_per_pass=p["patching.branches_per_pass"],
        )
        tables.append(single_head_table(effects, conditions, phase, twin))
    write_table(args.single_heads, pd.concat(tables, ignore_index=True))


if __name__ == "__main__":
    main()

"""Patch cumulative bins of ranked heads and their controls; read the margin at decision events.

Inputs: teacher weights and configuration, traces, examples, twins, tokenizer, rankings.
Outputs: margin.parquet (one row a condition, site, direction, example and metric).
Parameters: patching.bins, patching.random_draws, patching.seed, patching.branches_per_pass.
"""

import argparse

import pandas as pd
import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.twins import read_twins
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.patching.conditions import distinct_sets, head_masks, plan, without_controls
from mechdistill.patching.effects import margin_table
from mechdistill.patching.margin_sweep import sweep_margins
from mechdistill.patching.pairs import DESIGN, SHAM, eligible_traces, make_pairs
from mechdistill.progress import track
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
    model = load_model(args.model, args.config)
    tokenizer = load_tokenizer(args.tokenizer)
    traces = eligible_traces(
        read_traces(args.traces, "patching"), read_examples(args.examples, "patching")
    )
    twins = read_twins(args.twins)
    size = model.config.num_hidden_layers, model.config.num_attention_heads
    bins, draws = p["patching.bins"], p["patching.random_draws"]
    planned = plan(read_table(args.rankings), size, bins=bins, draws=draws, seed=p["patching.seed"])
    tables = []
    for twin, phase in track(DESIGN, "twin and phase"):
        # controls where the corruption fits the phase; heads of the other phase on the same events
        own = without_controls(planned[phase]) if twin == SHAM else planned[phase]
        other = [] if twin == SHAM else without_controls(planned[3 - phase])
        sets = distinct_sets([*own, *other])
        effects = sweep_margins(
            model,
            make_pairs(traces, twins, twin, tokenizer),
            phase,
            head_masks(sets, *size),
            pad_id=tokenizer.pad_token_id,
            branches_per_pass=p["patching.branches_per_pass"],
        )
        tables.append(margin_table(effects, own, sets, phase, twin))
        if other:
            tables.append(margin_table(effects, other, sets, 3 - phase, twin))
    write_table(args.margin, pd.concat(tables, ignore_index=True))


if __name__ == "__main__":
    main()

"""Patch ranked heads while the teacher writes; read Focus and Confusion, and what was decided.

Inputs: teacher weights and configuration, traces, examples, twins, label space, tokenizer,
rankings.
Outputs: generated.parquet (one row a condition, site, direction, example and metric: in phase 1
focus and region_recall, in phase 2 confusion and near_miss_rate).
Parameters: patching.generated_examples, patching.generated_bins, patching.random_draws,
patching.seed, patching.batch_size, traces.early_tokens, traces.max_new_tokens, text_encoder.
"""

import argparse

import pandas as pd
import torch

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.prompts import ANSWER, REVIEW
from mechdistill.data.tokenizer import load_tokenizer, stop_ids
from mechdistill.data.twins import read_twins
from mechdistill.evaluate.anchors import text_anchors
from mechdistill.evaluate.confusion import confusion
from mechdistill.evaluate.focus import focus
from mechdistill.models.loading import load_model
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.parameters import Parameters
from mechdistill.patching.conditions import (
    conditions,
    heads_of,
    read_rankings,
    without_controls,
)
from mechdistill.patching.decisions import near_miss_rate, region_recall
from mechdistill.patching.generated import Reading, patch_generated
from mechdistill.patching.pairs import DESIGN, SHAM, eligible_traces, make_pairs
from mechdistill.traces.parse import parse_trace
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
    model = load_model(args.model, args.config)
    tokenizer = load_tokenizer(args.tokenizer)
    space = read_label_space(args.label_space)
    examples = read_examples(args.examples, "patching")[: p["patching.generated_examples"]]
    by_name = {example.example: example for example in examples}
    traces = eligible_traces(read_traces(args.traces, "patching"), examples)
    twins, rankings = read_twins(args.twins), read_table(args.rankings)
    encoder = TextEncoder.packaged(**p["text_encoder"])
    text = (text_anchors(examples, space, encoder), tokenizer, encoder)
    size = model.config.num_hidden_layers, model.config.num_attention_heads

    def parse(example, tokens):
        return parse_trace(by_name[example], tokens, tokenizer, space, p["traces.early_tokens"])

    # the early window ends before the review, the late one before the answer list
    readings = {
        1: Reading(
            p["traces.early_tokens"],
            stop_ids(tokenizer, [ANSWER, REVIEW]),
            {
                "focus": lambda traces, donors: focus(traces, *text),
                "region_recall": lambda traces, donors: region_recall(traces, by_name),
            },
        ),
        2: Reading(
            p["traces.max_new_tokens"],
            stop_ids(tokenizer, [ANSWER]),
            {
                "confusion": lambda traces, donors: confusion(traces, *text, donors),
                "near_miss_rate": lambda traces, donors: near_miss_rate(traces, by_name),
            },
        ),
    }
    tables = []
    for twin, phase in DESIGN:
        planned = conditions(
            read_rankings(rankings, "teacher", phase),
            heads_of(*size),
            bins=p["patching.generated_bins"],
            draws=p["patching.random_draws"],
            seed=p["patching.seed"],
        )
        table = patch_generated(
            model,
            make_pairs(traces, twins, twin, tokenizer),
            phase,
            without_controls(planned) if twin == SHAM else planned,
            readings[phase],
            parse,
            max_new_tokens=p["traces.max_new_tokens"],
            eos_id=tokenizer.eos_token_id,
            pad_id=tokenizer.pad_token_id,
            batch_size=p["patching.batch_size"],
        )
        tables.append(table)
    write_table(args.generated, pd.concat(tables, ignore_index=True))


if __name__ == "__main__":
    main()

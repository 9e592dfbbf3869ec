"""Measure how much each rationale helps a base student to the answer (Rationale Difficulty).

Arguments: --base, --config (weights and configuration of the base student), --traces (greedy),
--samples, --examples, --tokenizer.
Output: --difficulty (difficulty.parquet: one row a usable training trace: example, draw, f1 of its
label list against the gold labels, perplexity of the list behind the reasoning and behind the
prompt alone, difficulty = their ratio, listed: whether the reasoning spells the list out).
Parameters: none.
"""

import argparse

import pandas as pd
import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.distil.samples import read_samples
from mechdistill.distil.selection import difficulties, lists_its_answer, set_f1
from mechdistill.distil.sequences import usable
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("base", "config", "traces", "samples", "examples", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--difficulty", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(args, "config", "tokenizer", "examples", "traces", split="training")
    check_arguments(args, "examples", "tokenizer", traces=args.samples)
    gold = {e.example: e.gold for e in read_examples(args.examples, "training")}
    drawn = [(0, trace) for trace in read_traces(args.traces, "training")]
    drawn = [(draw, t) for draw, t in [*drawn, *read_samples(args.samples)] if usable(t)]
    traces = [trace for _, trace in drawn]
    pad_id = load_tokenizer(args.tokenizer).pad_token_id
    behind, alone = difficulties(load_model(args.base, args.config), traces, pad_id)
    table = {
        "example": [trace.example for trace in traces],
        "draw": [draw for draw, _ in drawn],
        "f1": [set_f1(trace.answer, gold[trace.example]) for trace in traces],
        "perplexity": behind,
        "perplexity_alone": alone,
        "difficulty": behind / alone,
        "listed": [lists_its_answer(trace) for trace in traces],
    }
    write_table(args.difficulty, pd.DataFrame(table))


if __name__ == "__main__":
    main()

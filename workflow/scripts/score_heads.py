"""Score every head of the teacher on the ranking examples (Eqs. 1, 3, all variants).

Inputs: teacher weights and configuration, traces, examples, label space, tokenizer.
Outputs: measurements.parquet (one row a variant, head and example), margins.parquet (the margin
at each refinement position), head_scores.parquet (means over examples with intervals).
Parameters: heads.bootstrap, heads.seed, heads.minimum_keys, heads.batch_size.
"""

import argparse

import torch

from mechdistill.artifacts import write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.heads.measure import measure_heads
from mechdistill.heads.ranking import score_heads
from mechdistill.models.loading import load_model
from mechdistill.parameters import Parameters
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "config", "traces", "examples", "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("measurements", "margins", "head-scores"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    torch.set_num_threads(1)
    check_arguments(
        args, "config", "tokenizer", "label-space", "examples", "traces", split="ranking"
    )
    measured = measure_heads(
        load_model(args.model, args.config),
        read_traces(args.traces, "ranking"),
        read_examples(args.examples, "ranking"),
        read_label_space(args.label_space),
        load_tokenizer(args.tokenizer),
        name="teacher",
        minimum_keys=p["heads.minimum_keys"],
        batch_size=p["heads.batch_size"],
    )
    scores = score_heads(measured.values, resamples=p["heads.bootstrap"], seed=p["heads.seed"])
    write_table(args.measurements, measured.values)
    write_table(args.margins, measured.margins)
    write_table(args.head_scores, scores)


if __name__ == "__main__":
    main()

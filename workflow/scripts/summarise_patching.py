"""Summarise patching: means, differences, percentages and intervals over examples.

Inputs: margin.parquet, generated.parquet, examples.
Outputs: summary.parquet (one row a condition and metric).
Parameters: patching.generated_examples, patching.seed, significance.bootstrap.
"""

import argparse

import pandas as pd

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.parameters import Parameters
from mechdistill.patching.summary import summarise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("margin", "generated", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--summary", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    count = len(read_examples(args.examples, "patching"))
    options = {"resamples": p["significance.bootstrap"], "seed": p["patching.seed"]}
    margin = summarise(read_table(args.margin), count, **options)
    generated = summarise(
        read_table(args.generated, may_be_empty=True),
        min(count, p["patching.generated_examples"]),
        **options,
    )
    write_table(args.summary, pd.concat([margin, generated], ignore_index=True))


if __name__ == "__main__":
    main()

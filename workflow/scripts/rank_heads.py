"""Rank the heads under every score variant, and see whether two halves of the examples agree.

Inputs: head_scores.parquet, measurements.parquet.
Outputs: rankings.parquet, reliability.parquet.
Parameters: heads.bootstrap, heads.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_table
from mechdistill.heads.ranking import rank_heads
from mechdistill.heads.reliability import split_half_reliability
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("head-scores", "measurements"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("rankings", "reliability"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    measurements = read_table(args.measurements)
    reliability = split_half_reliability(
        measurements, splits=p["heads.bootstrap"], seed=p["heads.seed"]
    )
    write_table(args.rankings, rank_heads(read_table(args.head_scores)))
    write_table(args.reliability, reliability)


if __name__ == "__main__":
    main()

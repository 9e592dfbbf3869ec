"""Choose the heads that stand for each phase, and their weights.

Inputs: head_scores.parquet, margins.parquet.
Outputs: pools.json, with the high-scoring heads that were passed over.
Parameters: heads.pool_size, heads.pool_temperature.
"""

import argparse

from mechdistill.artifacts import read_table
from mechdistill.heads.measure import margin_deviation
from mechdistill.heads.pools import choose_pools, flagged_heads, write_pools
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("head-scores", "margins"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--pools", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    scores, size = read_table(args.head_scores), p["heads.pool_size"]
    deviation = margin_deviation(read_table(args.margins, may_be_empty=True))
    pools = choose_pools(scores, deviation, size=size, temperature=p["heads.pool_temperature"])
    flagged = {phase: flagged_heads(scores, phase, size=size) for phase in (1, 2)}
    write_pools(args.pools, pools, flagged)


if __name__ == "__main__":
    main()

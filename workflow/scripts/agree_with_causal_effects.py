"""Correlate every score variant with the causal effects of single heads.

Inputs: measurements.parquet, single_heads.parquet (patching one head at a time).
Outputs: causal_agreement.parquet.
Parameters: heads.bootstrap, heads.seed, heads.pool_size.
"""

import argparse

from mechdistill.artifacts import read_table, write_table
from mechdistill.heads.agreement import agreement_with_causal_effects
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("measurements", "single-heads"):
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--causal-agreement", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    agreement = agreement_with_causal_effects(
        read_table(args.measurements),
        read_table(args.single_heads, may_be_empty=True),
        top=p["heads.pool_size"],
        resamples=p["heads.bootstrap"],
        seed=p["heads.seed"],
    )
    write_table(args.causal_agreement, agreement)


if __name__ == "__main__":
    main()

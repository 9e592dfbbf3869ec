"""Hold every head's effect on decisions against its nulls, and attribution against ablation.

Inputs: ablation.parquet.
Outputs: --effects (one row a kind of decision and head), --agreement (one a kind of decision).
Parameters: patching.false_discovery, heads.bootstrap, heads.seed, heads.pool_size.
"""

import argparse

from mechdistill.artifacts import read_table, write_table
from mechdistill.parameters import Parameters
from mechdistill.patching.calibration import attribution_agreement, calibrate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ablation", required=True, help="input")
    for name in ("effects", "agreement"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    ablation = read_table(args.ablation, may_be_empty=True)
    drawn = {"resamples": p["heads.bootstrap"], "seed": p["heads.seed"]}
    effects = calibrate(ablation, level=p["patching.false_discovery"], **drawn)
    agreement = attribution_agreement(ablation, top=p["heads.pool_size"], **drawn)
    write_table(args.effects, effects)
    write_table(args.agreement, agreement)


if __name__ == "__main__":
    main()

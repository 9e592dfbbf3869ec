"""Compare what the heads found in trained students do for decisions with what the teacher's do.

Inputs: --teacher (head_sets.parquet of the teacher), --students (one a student,
.../METHOD-seedSEED/patching/head_sets.parquet).
Output: --recovery (one row a method, seed, kind of decision and number of heads).
Parameters: significance.bootstrap, significance.seed.
"""

import argparse
from pathlib import Path

from mechdistill.artifacts import read_table, write_table
from mechdistill.evaluate.causal_recovery import causal_recovery
from mechdistill.parameters import Parameters
from mechdistill.report.resampling import Bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--teacher", required=True, help="input")
    parser.add_argument("--students", required=True, nargs="+", type=Path, help="inputs")
    parser.add_argument("--recovery", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    students = {}
    for path in args.students:
        method, _, seed = path.parts[-3].partition("-seed")
        students[method, int(seed)] = read_table(path, may_be_empty=True)
    recovery = causal_recovery(
        read_table(args.teacher, may_be_empty=True),
        students,
        Bootstrap(p["significance.bootstrap"], p["significance.seed"]),
    )
    write_table(args.recovery, recovery)


if __name__ == "__main__":
    main()

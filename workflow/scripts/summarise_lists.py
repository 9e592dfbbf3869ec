"""Summarise patching by the length of the candidate lists.

Inputs: --margins and --written, one of each a length, shortest first.
Output: --summary (one row a length, condition and metric).
Parameters: patching.seed, significance.bootstrap.
"""

import argparse

from mechdistill.artifacts import read_table, write_table
from mechdistill.parameters import Parameters
from mechdistill.patching.listed import summarise_lists


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("margins", "written"):
        parser.add_argument(f"--{name}", required=True, nargs="+", help="inputs")
    parser.add_argument("--summary", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    parts = [
        (read_table(margin, may_be_empty=True), read_table(written))
        for margin, written in zip(args.margins, args.written, strict=True)
    ]
    summary = summarise_lists(parts, resamples=p["significance.bootstrap"], seed=p["patching.seed"])
    write_table(args.summary, summary)


if __name__ == "__main__":
    main()

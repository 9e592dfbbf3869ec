"""Draw Figure 11: growing sets of heads at decisions, ablated, and kept alone.

Inputs: --sets (of the rule ablate_head_sets).
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: significance.bootstrap, significance.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.figures.head_sets import figure11, points11
from mechdistill.report.figures.points import as_frame, to_csv
from mechdistill.report.head_sets import COLUMNS, set_shares
from mechdistill.report.resampling import Bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    boot = Bootstrap(p["significance.bootstrap"], p["significance.seed"])
    shares = set_shares(read_table(args.sets, COLUMNS, may_be_empty=True), boot)
    save(figure11(shares), args.pdf, args.png)
    write_text(args.csv, to_csv(as_frame(points11(shares))))


if __name__ == "__main__":
    main()

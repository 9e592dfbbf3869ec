"""Draw Figure 12: outputs of growing sets of heads in place in another note's context.

Inputs: --knock-in (of the rule knock_in_heads).
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: significance.bootstrap, significance.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.figures.knock_in import figure12, points12
from mechdistill.report.figures.points import as_frame, to_csv
from mechdistill.report.knock_in import COLUMNS, knock_in_shares
from mechdistill.report.resampling import Bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--knock-in", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    boot = Bootstrap(p["significance.bootstrap"], p["significance.seed"])
    shares = knock_in_shares(read_table(args.knock_in, COLUMNS, may_be_empty=True), boot)
    save(figure12(shares), args.pdf, args.png)
    write_text(args.csv, to_csv(as_frame(points12(shares))))


if __name__ == "__main__":
    main()

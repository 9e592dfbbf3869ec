"""Draw Figure 1: Focus and Confusion along the reasoning, teacher and students.

Inputs: --curves.
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: distil.methods, significance.bootstrap, significance.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.evidence import COLUMNS
from mechdistill.report.figures.curves import all_bands, figure1, points1
from mechdistill.report.figures.points import as_frame, to_csv
from mechdistill.report.resampling import Bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--curves", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    boot = Bootstrap(p["significance.bootstrap"], p["significance.seed"])
    curves = read_table(args.curves, COLUMNS["curves"], may_be_empty=True)
    methods = ("teacher", *p["distil.methods"])
    bands = all_bands(curves, methods, boot)
    save(figure1(bands, methods), args.pdf, args.png)
    write_text(args.csv, to_csv(as_frame(points1(bands))))


if __name__ == "__main__":
    main()

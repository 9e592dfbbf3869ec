"""Draw Figure 5 (phase 1) or 8 (phase 2): denoising and noising growing sets of heads.

Arguments: --phase 1|2.
Inputs: --summary (of the patching stage).
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: none.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.evidence import COLUMNS
from mechdistill.report.figures.patching import patching_figure, points
from mechdistill.report.figures.points import to_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--phase", type=int, choices=(1, 2), required=True)
    parser.add_argument("--summary", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    Parameters.from_json(args.params)
    summary = read_table(args.summary, COLUMNS["patching_summary"], may_be_empty=True)
    save(patching_figure(summary, args.phase), args.pdf, args.png)
    write_text(args.csv, to_csv(points(summary, args.phase)))


if __name__ == "__main__":
    main()

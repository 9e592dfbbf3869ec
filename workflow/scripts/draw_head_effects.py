"""Draw Figure 10: effects of single heads on decisions beyond their nulls, and attribution.

Inputs: --effects (of the rule calibrate_heads).
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: none.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.figures.decisions import figure10, points10
from mechdistill.report.figures.points import to_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effects", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    Parameters.from_json(args.params)
    effects = read_table(args.effects, may_be_empty=True)
    save(figure10(effects), args.pdf, args.png)
    write_text(args.csv, to_csv(points10(effects)))


if __name__ == "__main__":
    main()

"""Draw Figure 14: the region before it is decided, read by probes and through single heads.

Inputs: --probe (of the rule probe_regions), --effects (of the rule calibrate_elicitation).
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: none.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.figures.elicitation import figure14, points14
from mechdistill.report.figures.points import to_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("probe", "effects"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    Parameters.from_json(args.params)
    tables = [read_table(path, may_be_empty=True) for path in (args.probe, args.effects)]
    save(figure14(*tables), args.pdf, args.png)
    write_text(args.csv, to_csv(points14(*tables)))


if __name__ == "__main__":
    main()

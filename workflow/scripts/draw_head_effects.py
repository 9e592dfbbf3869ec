"""Draw Figure 10: effects of single heads on decisions beyond their nulls, and attribution.

Inputs: --effects (of the rule calibrate_heads).
Outputs: --pdf, --png.
Parameters: none.
"""

import argparse

from mechdistill.artifacts import read_table
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.figures.decisions import figure10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--effects", required=True, help="input")
    for name in ("pdf", "png"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    Parameters.from_json(args.params)
    save(figure10(read_table(args.effects, may_be_empty=True)), args.pdf, args.png)


if __name__ == "__main__":
    main()

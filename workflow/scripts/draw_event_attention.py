"""Draw Figure 13: what heads that count at decisions attend to there.

Inputs: --attention (of the rule attend_at_events).
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: significance.bootstrap, significance.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.parameters import Parameters
from mechdistill.report.event_attention import COLUMNS, attention_shares
from mechdistill.report.figures.event_attention import figure13, points13
from mechdistill.report.figures.points import as_frame, to_csv
from mechdistill.report.resampling import Bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attention", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    boot = Bootstrap(p["significance.bootstrap"], p["significance.seed"])
    shares = attention_shares(read_table(args.attention, COLUMNS, may_be_empty=True), boot)
    save(figure13(shares), args.pdf, args.png)
    write_text(args.csv, to_csv(as_frame(points13(shares))))


if __name__ == "__main__":
    main()

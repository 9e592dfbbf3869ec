"""Draw Figure 7: heads by RefineScore, and what the best of them do along the reasoning.

Inputs: --head-scores, --dynamics, --config (the teacher's).
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: significance.bootstrap, significance.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.figure_style import save
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.report.evidence import COLUMNS
from mechdistill.report.figures.heads import figure7, points7
from mechdistill.report.figures.points import as_frame, to_csv
from mechdistill.report.resampling import Bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("head-scores", "dynamics", "config"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    boot = Bootstrap(p["significance.bootstrap"], p["significance.seed"])
    scores = read_table(args.head_scores, COLUMNS["head_scores"])
    dynamics = read_table(args.dynamics, COLUMNS["dynamics"], may_be_empty=True)
    layers, _ = layers_and_heads(args.config)
    figure = figure7(scores, dynamics, layers, boot)
    save(figure, args.pdf, args.png)
    write_text(args.csv, to_csv(as_frame(points7(scores, dynamics, boot))))


if __name__ == "__main__":
    main()

"""Draw Figure 4: heads by CoarseScore, and what the best of them reads in the worked example.

Inputs: --head-scores, --attention-rows, --config, --traces (the teacher's), --examples,
--label-space, --tokenizer.
Outputs: --pdf, --png, --csv (what is drawn, as numbers).
Parameters: report.worked_example.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.figure_style import save
from mechdistill.models.shape import layers_and_heads
from mechdistill.parameters import Parameters
from mechdistill.report.evidence import COLUMNS
from mechdistill.report.figures.attention import figure4, points4
from mechdistill.report.figures.heads import ranked_scores
from mechdistill.report.figures.points import as_frame, to_csv
from mechdistill.report.worked_example import attention_of_best_head
from mechdistill.traces.store import read_traces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    inputs = ("head-scores", "attention-rows", "config", "traces", "examples")
    for name in (*inputs, "label-space", "tokenizer"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("pdf", "png", "csv"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "tokenizer", "label-space", "examples", "traces")
    scores = read_table(args.head_scores, COLUMNS["head_scores"])
    attended = attention_of_best_head(
        read_table(args.attention_rows, COLUMNS["attention_rows"], may_be_empty=True),
        ranked_scores(scores, 1),
        1,
        p["report.worked_example"],
        read_traces(args.traces),
        read_examples(args.examples),
        read_label_space(args.label_space),
        load_tokenizer(args.tokenizer),
    )
    layers, _ = layers_and_heads(args.config)
    save(figure4(scores, attended, layers), args.pdf, args.png)
    write_text(args.csv, to_csv(as_frame(points4(scores, attended))))


if __name__ == "__main__":
    main()

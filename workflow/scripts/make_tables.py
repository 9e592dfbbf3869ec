"""Make Table 1 and the table of all measures, with intervals, gains and marks.

Inputs: --scores, --predictions, --comparisons, --examples, --label-space.
Outputs: --csv, --latex, --html (Table 1), --measures (CSV of every measure, same columns),
--metrics (JSON of its values, as DVC compares them).
Parameters: evaluate.precision_at, significance.bootstrap, significance.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_json, write_text
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.evaluate.degenerate import degenerate_methods
from mechdistill.parameters import Parameters
from mechdistill.report.metrics import TABLE1
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.tables import TITLE, build, tidy, to_csv, to_html, to_latex, to_metrics
from mechdistill.report.values import method_values
from mechdistill.significance.measures import corpus_measures, document_measures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("scores", "predictions", "comparisons", "examples", "label-space"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("csv", "latex", "html", "measures", "metrics"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "label-space", "examples")
    scores, predictions = read_table(args.scores), read_table(args.predictions)
    labels = [label.code for label in read_label_space(args.label_space).labels]
    training = [example.gold for example in read_examples(args.examples, "training")]
    measures = [
        *corpus_measures(predictions, scores, labels, training, p["evaluate.precision_at"]),
        *document_measures(scores),
    ]
    boot = Bootstrap(p["significance.bootstrap"], p["significance.seed"])
    test = {example.example: example for example in read_examples(args.examples, "test")}
    everything = tidy(
        method_values(measures, boot),
        read_table(args.comparisons),
        degenerate_methods(predictions, test),
    )
    table1 = everything[everything["metric"].isin([metric.key for metric in TABLE1])]
    wide = build(table1, TABLE1, TITLE)
    write_text(args.csv, to_csv(table1))
    write_text(args.latex, to_latex(wide))
    write_text(args.html, to_html(wide))
    write_text(args.measures, to_csv(everything))
    write_json(args.metrics, to_metrics(everything))


if __name__ == "__main__":
    main()

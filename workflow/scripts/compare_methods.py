"""Compare methods on every score: difference, interval, tests, correction, mark.

Arguments: --scores, --predictions, --validation-predictions (of all models), --label-space,
--examples.
Output: --comparisons (comparisons.parquet, columns in mechdistill.significance.compare).
Parameters: distil.methods, evaluate.precision_at, significance.bootstrap, significance.alpha,
significance.seed.
"""

import argparse

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.parameters import Parameters
from mechdistill.significance.compare import Settings, compare
from mechdistill.significance.measures import (
    DATA_LEVELS,
    corpus_measures,
    document_measures,
    validation_scores,
)
from mechdistill.significance.plan import baselines, best_baseline, pairs

INPUTS = ("scores", "predictions", "validation-predictions", "label-space", "examples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in INPUTS:
        parser.add_argument(f"--{name}", required=True, help="input")
    parser.add_argument("--comparisons", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "label-space", "examples")
    scores, predictions = read_table(args.scores), read_table(args.predictions)
    labels = [label.code for label in read_label_space(args.label_space).labels]
    training = [example.gold for example in read_examples(args.examples, "training")]
    methods = p["distil.methods"]
    rivals = baselines(methods)
    validation = validation_scores(read_table(args.validation_predictions), labels, rivals)
    measures = [
        *document_measures(scores[~scores["metric"].isin(DATA_LEVELS)]),
        *corpus_measures(predictions, scores, labels, training, p["evaluate.precision_at"]),
    ]
    settings = Settings(
        p["significance.bootstrap"], p["significance.alpha"], p["significance.seed"]
    )
    comparisons = compare(measures, pairs(methods), best_baseline(validation, rivals), settings)
    write_table(args.comparisons, comparisons)


if __name__ == "__main__":
    main()

"""Put the tables of all models together, and compute what only a whole split has.

Arguments: --scores, --curves, --predictions, --validation-predictions (each the files of all
models, in one order), --simulated (simulatability.parquet, or nothing), --label-space, --examples.
Outputs: --all-scores, --all-curves, --all-predictions, --all-validation-predictions
(concatenations), --corpus (corpus.parquet: model, method, seed, metric, value, n_documents: every
metric of every model on the whole test split), --definitions (definitions.json: how scores are
computed, over how many labels; statuses of the traces of each model).
Parameters: evaluate.precision_at, text_encoder.name, text_encoder.sha256.
"""

import argparse

import pandas as pd

from mechdistill.artifacts import read_table, write_json, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments
from mechdistill.evaluate import bleu
from mechdistill.evaluate.frequency import group_sizes, training_uses
from mechdistill.evaluate.label_sets import label_groups
from mechdistill.evaluate.las_scores import simulatability_scores
from mechdistill.parameters import Parameters
from mechdistill.significance.measures import corpus_measures, corpus_table, document_measures

TABLES = ("scores", "curves", "predictions", "validation-predictions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in TABLES:
        parser.add_argument(f"--{name}", required=True, nargs="+", help="input, one a model")
        parser.add_argument(f"--all-{name}", required=True, help="output")
    parser.add_argument("--simulated", nargs="*", default=[], help="input")
    for name in ("label-space", "examples"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("corpus", "definitions"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    check_arguments(args, "label-space", "examples")
    labels = [label.code for label in read_label_space(args.label_space).labels]
    tables = {}
    for name in TABLES:
        key = name.replace("-", "_")
        files = [read_table(path, may_be_empty=name == "curves") for path in getattr(args, key)]
        if name == "scores":
            files += [simulatability_scores(read_table(path), labels) for path in args.simulated]
        tables[key] = pd.concat(files, ignore_index=True)
        write_table(getattr(args, f"all_{key}"), tables[key])
    scores, predictions = tables["scores"], tables["predictions"]
    training = [example.gold for example in read_examples(args.examples, "training")]
    models = predictions[["method", "seed", "model"]].drop_duplicates()
    names = {(method, seed): model for method, seed, model in models.to_numpy().tolist()}
    corpus = corpus_measures(predictions, scores, labels, training, p["evaluate.precision_at"])
    write_table(args.corpus, corpus_table([*corpus, *document_measures(scores)], names))
    gold = predictions.drop_duplicates("example")["gold"]
    groups = label_groups(gold, labels, set().union(*training))
    statuses = predictions.groupby("model", sort=False)["status"].value_counts(sort=False)
    definitions = {
        "bleu": bleu.signature(),
        "text_encoder": {"name": p["text_encoder.name"], "sha256": p["text_encoder.sha256"]},
        "labels_by_training_frequency": group_sizes(training_uses(training, labels), gold),
        "labels_in_macro_f1": {name: int(among.sum()) for name, among in groups.items()},
        "trace_status": {
            str(model): {str(status): int(n) for (_, status), n in rows.sort_index().items()}
            for model, rows in statuses.groupby(level=0, sort=False)
        },
        "answers_outside_label_space": {
            str(model): int(n)
            for model, n in predictions.groupby("model", sort=False)["outside_space"].sum().items()
        },
    }
    write_json(args.definitions, definitions)


if __name__ == "__main__":
    main()

"""Compare the students of each data set together: gains averaged over them, large less small.

Inputs, one of each member in order: --scores, --predictions, --budgets (budget.csv), --examples,
--label-space.
Output: --comparisons (columns: data_set, then those of mechdistill.significance.students).
Parameters: members, data_set, student, distil.methods, significance.bootstrap, significance.alpha,
significance.seed.
"""

import argparse

import pandas as pd

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import read_examples
from mechdistill.data.labels import read_label_space
from mechdistill.data.one_world import check_arguments, check_same_notes
from mechdistill.parameters import Parameters
from mechdistill.report.joined.places import by_place, data_sets, places
from mechdistill.significance.compare import Settings
from mechdistill.significance.student_plan import Trained, joined_measures, student_contrasts
from mechdistill.significance.students import contrast_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("scores", "predictions", "budgets", "examples", "label-space"):
        parser.add_argument(f"--{name}", required=True, nargs="+", help="inputs")
    parser.add_argument("--comparisons", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    members = places(p["members"], p["data_set"], p["student"])
    methods = p["distil.methods"]
    settings = Settings(
        p["significance.bootstrap"], p["significance.alpha"], p["significance.seed"]
    )
    files = {
        place: argparse.Namespace(label_space=label_space, examples=examples)
        for place, label_space, examples in zip(
            members, args.label_space, args.examples, strict=True
        )
    }
    scores = by_place(members, args.scores, read_table)
    predictions = by_place(members, args.predictions, read_table)
    sizes = by_place(members, args.budgets, lambda path: int(pd.read_csv(path)["parameters"].max()))
    tables = []
    for data_set in data_sets(members):
        own = [place for place in members if place.data_set == data_set]
        check_arguments(files[own[0]], "label-space", "examples")
        check_same_notes([files[place].examples for place in own])
        measures = joined_measures(
            {place.member: scores[place] for place in own},
            {place.member: predictions[place] for place in own},
            [label.code for label in read_label_space(files[own[0]].label_space).labels],
            [note.gold for note in read_examples(files[own[0]].examples, "training")],
        )
        trained = {
            place.member: Trained(place.student, methods[place.member], sizes[place])
            for place in own
        }
        table = contrast_table(measures, student_contrasts(trained), settings)
        tables.append(table.assign(data_set=data_set)[["data_set", *table.columns]])
    write_table(args.comparisons, pd.concat(tables, ignore_index=True))


if __name__ == "__main__":
    main()

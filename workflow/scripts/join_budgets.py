"""Put the budgets of all members below each other, and the times of their methods.

Inputs: --budgets (budget.csv), --times (times.csv), one of each member in order.
Outputs: --table (budget.csv: every run), --summary (times.csv: one row a member and method, ratio
to plain distillation).
Parameters: members, data_set, student.
"""

import argparse

import pandas as pd

from mechdistill.artifacts import write_text
from mechdistill.parameters import Parameters
from mechdistill.report.joined.budgets import joined_times
from mechdistill.report.joined.places import by_place, placed, places
from mechdistill.report.tables import to_csv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("budgets", "times"):
        parser.add_argument(f"--{name}", required=True, nargs="+", help="inputs")
    for name in ("table", "summary"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    members = places(p["members"], p["data_set"], p["student"])
    write_text(args.table, to_csv(placed(by_place(members, args.budgets, pd.read_csv))))
    write_text(args.summary, to_csv(joined_times(by_place(members, args.times, pd.read_csv))))


if __name__ == "__main__":
    main()

"""Put the budgets of all students side by side, and their times apart.

Inputs: --budgets (budget.json of every student, .../METHOD/seedSEED/budget.json).
Outputs: --table (budget.csv: amounts, ratios to plain distillation, what is out of line), --times
(times.csv: wall time and memory, which differ from run to run).
Parameters: none.
"""

import argparse
from pathlib import Path

from mechdistill.artifacts import read_json, write_text
from mechdistill.parameters import Parameters
from mechdistill.report.budgets import budget_table, time_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budgets", required=True, nargs="+", type=Path, help="inputs")
    for name in ("table", "times"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    Parameters.from_json(args.params)
    budgets = {
        (path.parts[-3], int(path.parts[-2].removeprefix("seed"))): read_json(path)
        for path in args.budgets
    }
    for path, table in ((args.table, budget_table(budgets)), (args.times, time_table(budgets))):
        write_text(path, table.to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()

"""Choose a method's setting by micro-F1 on the validation notes; of equals the first.

Arguments: --trials (trial.json of every setting, in order).
Outputs: --tuned (tuned.json: settings, number, tried), --tuning (tuning.parquet: one row a setting
and parameter: method, number, parameter, value, micro_f1, chosen).
Parameters: none.
"""

import argparse
import json

import pandas as pd

from mechdistill.artifacts import read_json, write_json, write_table
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", required=True, nargs="+", help="inputs")
    for name in ("tuned", "tuning"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    Parameters.from_json(args.params)
    trials = [read_json(path) for path in args.trials]
    best = max(trials, key=lambda trial: (trial["micro_f1"], -trial["number"]))
    rows = [
        {
            "method": trial["method"],
            "number": trial["number"],
            "parameter": key,
            "value": json.dumps(value),
            "micro_f1": trial["micro_f1"],
            "chosen": trial is best,
        }
        for trial in trials
        for key, value in sorted(trial["settings"].items())
    ]
    write_table(args.tuning, pd.DataFrame(rows))
    write_json(
        args.tuned,
        {"settings": best["settings"], "number": best["number"], "tried": len(trials)},
    )


if __name__ == "__main__":
    main()

"""Write the page of a joined study (report.html) and the lines that a run ends with (findings.txt).

Inputs: --measures (measures.csv), --label-space, --member-reports (report.html), one of each member
in order; --tables (HTML of Tables 1 to 5), --comparisons (of students), --claims, --budgets,
--detectable (CSV).
Outputs: --report, --findings.
Parameters: study, members, left_out, data_set, student, distil.methods, distil.seeds.
"""

import argparse
import os
from pathlib import Path

import pandas as pd

from mechdistill.artifacts import read_table, read_text, write_text
from mechdistill.data.labels import read_label_space
from mechdistill.parameters import Parameters
from mechdistill.report.joined.findings import Story, findings
from mechdistill.report.joined.page import JoinedPage, render
from mechdistill.report.joined.places import by_place, places
from mechdistill.report.joined.tables import read_measures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("measures", "label-space", "member-reports", "tables"):
        parser.add_argument(f"--{name}", required=True, nargs="+", help="inputs")
    for name in ("comparisons", "claims", "budgets", "detectable"):
        parser.add_argument(f"--{name}", required=True, help="input")
    for name in ("report", "findings"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    members = places(p["members"], p["data_set"], p["student"])
    methods, seeds = p["distil.methods"], p["distil.seeds"]
    spaces = by_place(members, args.label_space, read_label_space)
    folder = Path(args.report).parent
    story = Story(
        study=p["study"],
        notes={place.data_set: space.wording.notes for place, space in spaces.items()},
        methods={place: len(methods[place.member]) for place in members},
        seeds={place: len(seeds[place.member]) for place in members},
        left_out=p["left_out"],
        measures=read_measures(by_place(members, args.measures, str), methods),
        contrasts=read_table(args.comparisons, may_be_empty=True),
        claims=pd.read_csv(args.claims, keep_default_na=False),
        detectable=pd.read_csv(args.detectable),
        budgets=pd.read_csv(args.budgets),
    )
    lines = findings(story)
    reports = by_place(members, args.member_reports, lambda path: os.path.relpath(path, folder))
    page = JoinedPage(story, lines, [read_text(path) for path in args.tables], reports)
    write_text(args.report, render(page))
    write_text(args.findings, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

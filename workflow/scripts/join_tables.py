"""Make Tables 1 to 5 of a joined study, and the differences that each member would have shown.

Inputs: --measures (measures.csv) and --member-comparisons, one of each member in order;
--comparisons (of students).
Outputs: --csv, --latex, --html (one a table, in order), --detectable (CSV).
Parameters: members, data_set, student, distil.methods.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.parameters import Parameters
from mechdistill.report.joined.budgets import detectable_table
from mechdistill.report.joined.places import by_place, places
from mechdistill.report.joined.tables import PLANS, read_measures, tidy_table, wide_table
from mechdistill.report.tables import to_csv, to_html, to_latex


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("measures", "member-comparisons"):
        parser.add_argument(f"--{name}", required=True, nargs="+", help="inputs")
    parser.add_argument("--comparisons", required=True, help="input")
    for name in ("csv", "latex", "html"):
        parser.add_argument(f"--{name}", required=True, nargs=len(PLANS), help="outputs")
    parser.add_argument("--detectable", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    members = places(p["members"], p["data_set"], p["student"])
    measures = read_measures(by_place(members, args.measures, str), p["distil.methods"])
    contrasts = read_table(args.comparisons, may_be_empty=True)
    for plan, csv, latex, html in zip(PLANS, args.csv, args.latex, args.html, strict=True):
        wide = wide_table(plan, measures, contrasts)
        write_text(csv, to_csv(tidy_table(plan, measures, contrasts)))
        write_text(latex, to_latex(wide))
        write_text(html, to_html(wide))
    comparisons = by_place(members, args.member_comparisons, read_table)
    write_text(args.detectable, to_csv(detectable_table(comparisons)))


if __name__ == "__main__":
    main()

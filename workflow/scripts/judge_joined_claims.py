"""Put the verdicts of all members together, and judge the claims that only they together answer.

Inputs: --member-claims (claims.csv), one of each member in order; --comparisons (of students).
Output: --claims (CSV: data_set, student, member, seeds, then the columns of claims.csv).
Parameters: study, members, data_set, student, distil.seeds.
"""

import argparse

from mechdistill.artifacts import read_table, write_text
from mechdistill.parameters import Parameters
from mechdistill.report.claims.registry import read_claims, to_csv
from mechdistill.report.joined.claims import Joined, joined_claims
from mechdistill.report.joined.places import by_place, data_sets, places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--member-claims", required=True, nargs="+", help="inputs")
    parser.add_argument("--comparisons", required=True, help="input")
    parser.add_argument("--claims", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    members = places(p["members"], p["data_set"], p["student"])
    claims = joined_claims(
        by_place(members, args.member_claims, read_claims),
        {place: len(p["distil.seeds"][place.member]) for place in members},
        Joined(read_table(args.comparisons, may_be_empty=True), data_sets(members)),
        p["study"],
        args.comparisons,
    )
    write_text(args.claims, to_csv(claims))


if __name__ == "__main__":
    main()

"""Derive every number and picture of the report once more from the rows of single examples.

Reads what lies in the checkout: results, records and code.
Outputs: --numbers (HTML).
Parameters: study.
"""

import argparse
from pathlib import Path

from mechdistill.artifacts import write_text
from mechdistill.audit.check import PAGES, look
from mechdistill.audit.finding import Verdict
from mechdistill.audit.numbers import DERIVING, wrong_numbers
from mechdistill.audit.page import numbers_page
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    root = Path.cwd()
    seen = look(root, p["study"]).without(PAGES)
    jobs = [job for job in seen.records if job.rule in DERIVING]
    found = tuple(wrong_numbers(jobs, root, restricted=seen.settings.restricted))
    made = {file.path for job in jobs for file in job.outputs}
    size = sum(file.size for path, file in seen.files.items() if path in made)
    verdict = Verdict(seen.study, found, len(jobs), len(made), size)
    write_text(args.numbers, numbers_page(verdict, jobs))
    print(f"numbers of {verdict.study}: {verdict.outcome} ({verdict.looked})")


if __name__ == "__main__":
    main()

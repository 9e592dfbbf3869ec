"""Audit the results of the study by their bytes, and write down where each number comes from.

Reads what lies in the checkout: results, records, Snakemake's notes, parameters and code.
Outputs: --audit, --trace (HTML).
Parameters: study.
"""

import argparse
from pathlib import Path

from mechdistill.artifacts import write_text
from mechdistill.audit.check import audit_within_run
from mechdistill.audit.page import audit_page
from mechdistill.audit.trace_page import trace_page
from mechdistill.parameters import Parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("audit", "trace"):
        parser.add_argument(f"--{name}", required=True, help="output")
    parser.add_argument("--params", required=True, help="JSON object of parameters")
    args = parser.parse_args()
    p = Parameters.from_json(args.params)
    verdict, seen = audit_within_run(Path.cwd(), p["study"])
    write_text(args.audit, audit_page(verdict, [job for each in seen for job in each.records]))
    write_text(args.trace, trace_page(seen[-1]))
    print(f"audit of {verdict.study}: {verdict.outcome} ({verdict.looked})")


if __name__ == "__main__":
    main()

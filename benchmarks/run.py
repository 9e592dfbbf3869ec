"""Measure all that the page tells; goes on where it stopped.

python -m benchmarks.run [--quick] [--only "row scoring"] [--minutes 18]
"""

from __future__ import annotations

import argparse
import os
import time

from benchmarks.cases import all_cases, chosen, quick_cases
from benchmarks.measurement import measure, results, show


def main() -> None:
    """Case by case; a case is written when it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all works")
    parser.add_argument("--only", nargs="*", default=[], help="names of benchmarks")
    parser.add_argument("--axis", help="of the cases to run")
    parser.add_argument("--values", nargs="*", type=int, help="on that axis")
    parser.add_argument("--minutes", type=float, help="begin no case after so many")
    args = parser.parse_args()
    if args.quick:
        os.environ.setdefault("MECHDISTILL_BENCH_RESULTS", str(results() / "quick"))
    start = time.monotonic()
    for case in chosen(quick_cases() if args.quick else all_cases(), args.only):
        if (args.axis and case.axis != args.axis) or (
            args.values and case.value not in args.values
        ):
            continue
        minutes = (time.monotonic() - start) / 60
        if args.minutes and minutes > args.minutes:
            print(f"not begun after {minutes:.0f} minutes: {case.path.stem}")
            continue
        show(measure(case))
        print(f"  after {(time.monotonic() - start) / 60:.1f} minutes", flush=True)


if __name__ == "__main__":
    main()

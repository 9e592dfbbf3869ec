"""How far results depend on the number of threads: the smoke study with one and with two.

    python -m tests.workflow.threads                      to docs/reruns/threads.csv

A rule grants a job one thread, whatever the machine has, so that results do not depend on it. Here
Snakemake is told to grant two. Sums are then added in another order.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mechdistill.dvc_stages import dry_run, jobs_of_dry_run
from tests.workflow.conftest import REPOSITORY, STUDY, Checkout, clone
from tests.workflow.faults import DRIVER, RESULTS, digests

TABLE = Path("docs", "reruns", "threads.csv")
COLUMNS = ("table", "column", "rows", "rows that differ", "greatest difference", "relative to")


def read(path: Path) -> pd.DataFrame:
    """A table of the results."""
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def differences(
    one: pd.DataFrame, two: pd.DataFrame
) -> Iterator[tuple[str, int, int, float, float]]:
    """Column, rows, rows that differ, greatest difference, and the greatest size in the column.

    Text that differs has an infinite difference; so have tables of unequal length.
    """
    if len(one) != len(two) or list(one.columns) != list(two.columns):
        yield "", len(one), len(one), np.inf, np.nan
        return
    for name in one.columns:
        a, b = one[name], two[name]
        if pd.api.types.is_float_dtype(a):
            apart = np.abs(a.to_numpy() - b.to_numpy())
            apart[a.isna().to_numpy() & b.isna().to_numpy()] = 0
            apart[a.isna().to_numpy() != b.isna().to_numpy()] = np.inf
            size = float(np.nanmax(np.abs(a.to_numpy()), initial=0))
            yield name, len(a), int((apart > 0).sum()), float(apart.max(initial=0)), size
        else:
            other = [plain(x) != plain(y) for x, y in zip(a, b, strict=True)]
            yield name, len(a), sum(other), np.inf if any(other) else 0.0, np.nan


def plain(value: Any) -> str:
    """Anything that a cell may hold, to be compared."""
    return repr(value.tolist() if isinstance(value, np.ndarray) else value)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", type=Path, help="a clone in which smoke is finished")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="threads-") as name:
        one = Checkout(options.one or clone(Path(name) / "one").root)
        done = one.run(*DRIVER, "--cores", "2")
        assert done.returncode == 0, done.stdout
        two = clone(Path(name) / "two")
        rules = sorted({rule for rule, _ in jobs_of_dry_run(dry_run(two.root, STUDY))})
        grants = [f"{rule}=2" for rule in rules]
        done = two.snakemake("--cores", "2", "--set-threads", *grants)
        assert done.returncode == 0, done.stdout
        ones, twos = digests(one), digests(two)
        same = [path for path in ones if ones[path] == twos.get(path)]
        print(f"{len(same)} of {len(ones)} files have the same bytes")
        rows = []
        for path in sorted(set(ones) - set(same)):
            print(f"other bytes: {path}")
            if Path(path).suffix in (".parquet", ".csv"):
                tables = [read(checkout.root / RESULTS / path) for checkout in (one, two)]
                rows += [(path, *row) for row in differences(*tables) if row[2]]
        frame = pd.DataFrame(rows, columns=list(COLUMNS))
        frame.to_csv(REPOSITORY / TABLE, index=False)
        print(frame.to_string())
        claims = [
            read(c.root / RESULTS / "report" / "claims.csv")["verdict"].tolist() for c in (one, two)
        ]
        other = sum(a != b for a, b in zip(*claims, strict=True))
        print(f"verdicts: {len(claims[0])}, of which {other} differ")
    return int(claims[0] != claims[1])


if __name__ == "__main__":
    sys.exit(main())

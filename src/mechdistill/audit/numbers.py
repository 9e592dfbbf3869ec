"""Every number and picture of the report derived once more from the rows of single examples.

The rules behind the report run again with the code that made it, each on what the rules before it
gave this time: tables from the scores and predictions of single notes, figures from rows of single
notes and heads. No model is read. A cell that was edited by hand is found even when its record and
`dvc.lock` were made to fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mechdistill.artifacts import how_to_make
from mechdistill.audit.again import in_order, other_outputs, run_again, workplace
from mechdistill.audit.cells import differing_cells
from mechdistill.audit.finding import Finding
from mechdistill.audit.record import Record
from mechdistill.errors import InputError

DERIVING = (
    *("rank_heads", "agree_with_causal_effects", "summarise_patching"),
    *("collect_scores", "compare_methods", "make_tables", "make_budget"),
    *("draw_curves", "draw_coarse_heads", "draw_refine_heads", "draw_patching"),
    *("judge_claims", "write_report"),
)
"""Rules that compute from rows alone, without a model."""
SHOWN = 5
"""Cells of one file that are named; the others are counted."""


def wrong_numbers(records: Sequence[Record], root: Path) -> Iterator[Finding]:
    """Cells, pictures and lines that the rows do not give."""
    deriving = [record for record in records if record.rule in DERIVING]
    with workplace() as folder:
        for record in in_order(deriving):
            try:
                run_again(record, root, folder)
            except InputError as error:
                yield Finding(
                    "CANNOT-DERIVE",
                    record.path,
                    error.what.replace(f"{root}/", ""),
                    "mend the other findings first",
                )
                return
            for path in other_outputs(record, root, folder):
                yield from _differences(path, root, folder)


def _differences(path: str, root: Path, folder: Path) -> Iterator[Finding]:
    found = differing_cells(root / path, folder / path)
    for name, stored, derived in found[:SHOWN]:
        more = f" ({len(found) - SHOWN} more cells differ)" if len(found) > SHOWN else ""
        yield Finding(
            "CELL" if name else "FIGURE",
            f"{path}: {name}" if name else path,
            f"it is {stored}; the rows of single examples give {derived}{more}",
            how_to_make(path),
        )

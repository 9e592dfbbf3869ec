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
from mechdistill.reproduce import warm_process

DERIVING = (
    *("rank_heads", "agree_with_causal_effects", "summarise_patching", "summarise_lists"),
    *("calibrate_heads", "calibrate_elicitation", "measure_recovery"),
    *("collect_scores", "compare_methods", "make_tables", "make_budget"),
    *("draw_curves", "draw_coarse_heads", "draw_refine_heads", "draw_patching"),
    *("draw_head_effects", "draw_head_sets", "draw_knock_in", "draw_event_attention"),
    "draw_elicitation",
    *("judge_claims", "write_report"),
    *("compare_students", "join_tables", "join_budgets", "judge_joined_claims"),
    "write_joined_report",
)
"""Rules that compute from rows alone, without a model."""
SHOWN = 5
"""Cells of one file that are named; the others are counted."""


def wrong_numbers(
    records: Sequence[Record], root: Path, *, code: Path | None = None, restricted: bool = False
) -> Iterator[Finding]:
    """Cells, pictures and lines that the rows do not give.

    Args:
        records: of the study.
        root: the checkout, or the exported study.
        code: the checkout whose code derives them where `root` is an exported study.
        restricted: the study's data are restricted: files are named, no cell, value or message.
    """
    deriving = [record for record in records if record.rule in DERIVING]
    with workplace() as folder, warm_process(code or root) as environment:
        for record in in_order(deriving):
            try:
                run_again(record, root, folder, environment, code)
            except InputError as error:
                what = error.what.replace(f"{root}/", "")
                said = f"the job {record.job} does not run again" if restricted else what
                yield Finding("CANNOT-DERIVE", record.path, said, "mend the other findings first")
                return
            for path in other_outputs(record, root, folder):
                found = _differences(path, root, folder)
                yield from [_without_content(path)] if restricted and found else found


def _differences(path: str, root: Path, folder: Path) -> list[Finding]:
    found = differing_cells(root / path, folder / path)
    more = f" ({len(found) - SHOWN} more cells differ)" if len(found) > SHOWN else ""
    return [
        Finding(
            "CELL" if name else "FIGURE",
            f"{path}: {name}" if name else path,
            f"it is {stored}; the rows of single examples give {derived}{more}",
            how_to_make(path),
        )
        for name, stored, derived in found[:SHOWN]
    ]


def _without_content(path: str) -> Finding:
    said = "the rows of single examples give another; data are restricted, so none is shown"
    return Finding("CELL", path, said, how_to_make(path))

"""A claim is one small function of the evidence; the registry holds them in the paper's order."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pandas as pd

from mechdistill.artifacts import how_to_make, read_text
from mechdistill.errors import InputError
from mechdistill.report.claims.statements import STATEMENTS
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import plain, signed
from mechdistill.report.verdicts import Estimate, Part, Verdict, conjunction, deciding_part

COLUMNS = (
    *("id", "statement", "verdict", "effect", "ci_low", "ci_high", "n", "unit"),
    *("measured", "detail", "sources"),
)


@dataclass(frozen=True)
class Outcome:
    """What a claim's function found: the parts that decide, and a sentence with the numbers."""

    parts: tuple[Part, ...]
    note: str = ""
    verdict: Verdict | None = None  # only where the parts alone do not decide

    @property
    def decided(self) -> Verdict:
        return self.verdict or conjunction([part.verdict for part in self.parts])


@dataclass(frozen=True)
class Claim:
    """A claim of the paper (`C`; of version 2, `V`), a variant (`C04.outputs`) or a check (`X`)."""

    id: str
    statement: str
    sources: tuple[str, ...]
    test: Callable[[Evidence], Outcome]


Evidenced = TypeVar("Evidenced")
UNKNOWN = Estimate(float("nan"), float("nan"), float("nan"), 0, "")

_CLAIMS: dict[str, Claim] = {}


def claim(
    id: str, *sources: str
) -> Callable[[Callable[[Evidence], Outcome]], Callable[[Evidence], Outcome]]:
    """Register a test of the statement `id`; `sources` are tables of the evidence that it reads."""

    def register(test: Callable[[Evidence], Outcome]) -> Callable[[Evidence], Outcome]:
        if id in _CLAIMS:
            raise ValueError(f"claim {id} is registered twice")
        _CLAIMS[id] = Claim(id, STATEMENTS[id], sources, test)
        return test

    return register


def claims() -> tuple[Claim, ...]:
    """All claims: C01 to C46, V01 to V13, each followed by its variants, then our own checks."""
    return tuple(_CLAIMS[id] for id in sorted(_CLAIMS))


def judge_all(evidence: Evidence, files: dict[str, str] | None = None) -> pd.DataFrame:
    """One row a claim, columns `COLUMNS`.

    Args:
        evidence: the study's tables.
        files: table name -> path, to name the source files of a claim that was tested.
    """
    rows = [_judged(item, evidence, files or {}) for item in claims()]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def to_csv(claims: pd.DataFrame) -> str:
    """The table of `judge_all` as CSV, numbers unrounded."""
    text: str = claims.to_csv(index=False, lineterminator="\n")
    return text


def read_claims(path: str | Path) -> pd.DataFrame:
    """The table that `to_csv` wrote.

    Raises:
        InputError: the file is missing, or holds other columns.
    """
    numbers = {column: [""] for column in ("effect", "ci_low", "ci_high")}
    text = io.StringIO(read_text(path))
    frame: pd.DataFrame = pd.read_csv(text, keep_default_na=False, na_values=numbers)
    if tuple(frame.columns) != COLUMNS:
        raise InputError(
            f"{path} is no table of claims: its columns are {', '.join(frame.columns)}",
            how_to_make(path),
        )
    return frame


def _judged(item: Claim, evidence: Evidence, files: dict[str, str]) -> dict[str, object]:
    sources = " ".join(files.get(name, name) for name in item.sources)
    return outcome_row(item.id, outcome_of(item.test, evidence), sources)


def outcome_of(test: Callable[[Evidenced], Outcome], evidence: Evidenced) -> Outcome:
    """What a claim's function finds; "not tested" with the reason where there is nothing to see."""
    try:
        return test(evidence)
    except NotTested as reason:
        text = str(reason)
        return Outcome((), f"{text[0].upper()}{text[1:]}.", Verdict.NOT_TESTED)


def outcome_row(id: str, outcome: Outcome, sources: str) -> dict[str, object]:
    """The row of the table of claims, columns `COLUMNS`."""
    shown = deciding_part(outcome.parts) if outcome.parts else None
    estimate = shown.estimate if shown else UNKNOWN
    verdict = outcome.decided
    label = str(verdict)
    if verdict is Verdict.NO_DIFFERENCE:
        label = f"{verdict} ({detectable(estimate)})"
    return {
        "id": id,
        "statement": STATEMENTS[id],
        "verdict": label,
        "effect": estimate.effect,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "n": estimate.n,
        "unit": estimate.unit,
        "measured": shown.name if shown else "",
        "detail": detail(outcome.parts, outcome.note),
        "sources": sources if verdict is not Verdict.NOT_TESTED else "",
    }


def detail(parts: Sequence[Part], note: str) -> str:
    """Every part as "name: effect [low, high] (n): verdict", then the note."""
    sentences = [f"{part.name}: {describe(part)}" for part in parts]
    listed = "; ".join(sentences)
    return " ".join(text for text in (listed and f"{listed}.", note) if text)


def detectable(estimate: Estimate) -> str:
    """What a missing difference means: `detectable difference 0.071`."""
    if estimate.low == estimate.high == 0:
        return "every difference is 0"
    return f"detectable difference {plain(estimate.detectable)}"


def describe(part: Part) -> str:
    """`+0.12 [+0.08, +0.16], n 60: holds`."""
    estimate = part.estimate
    if not estimate.known():
        return f"no interval (n {estimate.n}): {part.verdict}"
    numbers = f"{signed(estimate.effect)} [{signed(estimate.low)}, {signed(estimate.high)}]"
    verdict = str(part.verdict)
    if part.absent and part.verdict is Verdict.HOLDS:
        verdict = f"none shown ({detectable(estimate)})"
    return f"{numbers}, n {estimate.n}: {verdict}"

"""Differences between methods on the test notes.

Where the significance stage compared two methods, its row is the answer, so that claims, tables
and marks can never disagree; other pairs are resampled here in the same way.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.metrics import BY_KEY
from mechdistill.report.trajectories import shared_seeds
from mechdistill.report.verdicts import Estimate
from mechdistill.significance.plan import TEACHER


def score_grid(
    scores: pd.DataFrame,
    metric: str,
    method: str,
    notes: list[str],
    seeds: list[int] | None = None,
) -> np.ndarray:
    """Scores of one method as [seeds, notes], seeds ascending; the teacher has one row.

    `seeds` are the rows of a student, all of its own if not given.

    Raises:
        NotTested: the method was not trained or the metric not measured on it.
    """
    chosen = scores[(scores["method"] == method) & (scores["metric"] == metric)]
    if chosen.empty:
        raise NotTested(f"{_long(metric)} of {method} was not measured")
    table = chosen.pivot_table(index="seed", columns="example", values="value", dropna=False)
    rows = None if method == TEACHER else seeds
    grid: np.ndarray = table.reindex(index=rows, columns=notes).to_numpy(dtype=float)
    return grid


def shared_notes(scores: pd.DataFrame, metric: str, methods: tuple[str, ...]) -> list[str]:
    """Notes on which every one of the methods was scored, sorted."""
    rows = scores[scores["metric"] == metric]
    sets = [set(rows.loc[rows["method"] == method, "example"]) for method in methods]
    return sorted(set.intersection(*sets))


def seeds_of(scores: pd.DataFrame, metrics: tuple[str, ...], methods: tuple[str, ...]) -> list[int]:
    """Seeds with which every student among the methods was scored on every metric.

    Raises:
        NotTested: there is none.
    """
    rows = {
        (metric, method): scores[(scores["metric"] == metric) & (scores["method"] == method)]
        for metric in metrics
        for method in methods
        if method != TEACHER
    }
    return shared_seeds(*(chosen["seed"] for chosen in rows.values()))


def difference(evidence: Evidence, metric: str, method: str, reference: str) -> Estimate:
    """`method` minus `reference`, on the same notes and, where both have them, the same seeds.

    Raises:
        NotTested: one of them has no such score.
    """
    found = _compared(evidence, metric, method, reference)
    if found is not None:
        return found
    mirrored = _compared(evidence, metric, reference, method)
    if mirrored is not None:
        return -mirrored
    scores = evidence.table("scores")
    notes = shared_notes(scores, metric, (method, reference))
    for name in (method, reference):
        score_grid(scores, metric, name, notes)  # names the one that was not measured
    seeds = seeds_of(scores, (metric,), (method, reference))
    ours, theirs = (score_grid(scores, metric, m, notes, seeds) for m in (method, reference))
    return evidence.design.bootstrap.grid(ours - theirs, unit_of(metric))


def las_measured(evidence: Evidence) -> bool:
    """Whether the study had a simulator."""
    tables = [evidence.tables.get(name) for name in ("comparisons", "scores")]
    return any(table is not None and (table["metric"] == "las").any() for table in tables)


def _compared(evidence: Evidence, metric: str, method: str, reference: str) -> Estimate | None:
    """The significance stage's answer, if it compared this pair in this order."""
    compared = evidence.tables.get("comparisons")
    if compared is None:
        return None
    rows = compared[
        (compared["metric"] == metric)
        & (compared["method"] == method)
        & (compared["baseline"] == reference)
    ]
    if rows.empty:
        return None
    row = rows.iloc[0]
    low, high = float(row["ci_low"]), float(row["ci_high"])
    notes = int(row["n_documents"])
    return Estimate(float(row["difference"]), low, high, notes, unit_of(metric))


def unit_of(metric: str) -> str:
    """The unit of a metric's values, also of `macro_f1_all`, `p_at_5`, `help_found`."""
    return BY_KEY[metric].unit if metric in BY_KEY else "score"


def _long(metric: str) -> str:
    return BY_KEY[metric].long if metric in BY_KEY else metric

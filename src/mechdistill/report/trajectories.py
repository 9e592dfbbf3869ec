"""Curves of Focus and Confusion along the reasoning, one row a trace, t in [0, 1].

Traces are warped so that the first refinement position lies at `SPLIT`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from mechdistill.report.evidence import NotTested

SPLIT = 0.5


def trajectories(curves: pd.DataFrame, method: str, metric: str, kind: str) -> pd.DataFrame:
    """Values of one method: index (seed, example), columns t.

    Raises:
        NotTested: the method has no such curve.
    """
    chosen = curves[
        (curves["method"] == method) & (curves["metric"] == metric) & (curves["kind"] == kind)
    ]
    if chosen.empty:
        raise NotTested(f"there are no {kind} {metric} curves of {method}")
    return chosen.pivot_table(index=["seed", "example"], columns="t", values="value", dropna=False)


def early(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns up to the first refinement position."""
    return frame.loc[:, frame.columns.to_numpy(float) <= SPLIT]


def late(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns from the first refinement position on."""
    return frame.loc[:, frame.columns.to_numpy(float) >= SPLIT]


def slopes(frame: pd.DataFrame) -> pd.Series:
    """Least-squares slope of each row over t, in units of the metric per whole trace.

    Rows with fewer than three known points have no slope.
    """
    t = np.broadcast_to(frame.columns.to_numpy(dtype=float), frame.shape)
    values = frame.to_numpy(dtype=float)
    known = np.isfinite(values)
    count = known.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_t = np.where(known, t, 0).sum(axis=1) / count
        mean_value = np.where(known, values, 0).sum(axis=1) / count
        away = np.where(known, t - mean_t[:, None], 0)
        rise = np.where(known, values - mean_value[:, None], 0)
        slope = (away * rise).sum(axis=1) / (away**2).sum(axis=1)
    return pd.Series(np.where(count >= 3, slope, np.nan), index=frame.index)


def rank_correlations(frame: pd.DataFrame) -> pd.Series:
    """Spearman correlation of each row with t; a constant row has none."""
    ranks = frame.rank(axis=1)
    t = pd.DataFrame(
        np.broadcast_to(frame.columns.to_numpy(dtype=float), frame.shape),
        index=frame.index,
        columns=frame.columns,
    )
    return ranks.corrwith(t.where(frame.notna()).rank(axis=1), axis=1)


def stage_start(stage: str) -> int:
    """First token of a stage of the reasoning named `11-20` or `51+`."""
    return int(stage.rstrip("+").split("-")[0])


def as_grid(values: pd.Series, examples: list[str], seeds: list[int] | None = None) -> np.ndarray:
    """A series over (seed, example) as an array [seeds, examples]; gaps are NaN.

    Args:
        values: one value a seed and example.
        examples: the columns.
        seeds: the rows; all of the series' own, ascending, if not given.
    """
    table = values.unstack("example").reindex(index=seeds, columns=examples)
    grid: np.ndarray = table.to_numpy(dtype=float)
    return grid


def shared_seeds(*seeds: Iterable[int]) -> list[int]:
    """Training seeds that occur in every set, ascending.

    Raises:
        NotTested: there is none.
    """
    shared = sorted(set.intersection(*map(set, seeds)))
    if not shared:
        raise NotTested("the compared methods have no training seed in common")
    return shared


def shared_examples(*series: pd.Series) -> list[str]:
    """Examples that occur in every series, sorted."""
    sets = [set(values.index.get_level_values("example")) for values in series]
    return sorted(set.intersection(*sets))

"""Means over examples and their resamples, for tables of heads.

An example is the unit: positions are averaged within it first, so that long traces do not
dominate, and resampling draws whole examples.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


def example_matrix(rows: pd.DataFrame, examples: list[str], heads: pd.MultiIndex) -> Floats:
    """Values [examples, heads] of one score; NaN where the table has no row.

    Args:
        rows: columns example, layer, head, value; at most one row an example and head.
        examples: order of the rows of the result.
        heads: (layer, head) pairs, order of its columns.
    """
    wide = rows.pivot(index="example", columns=["layer", "head"], values="value")
    return wide.reindex(index=examples, columns=heads).to_numpy(dtype=np.float64)


def bootstrap_counts(n: int, resamples: int, seed: int) -> Floats:
    """How often each of n examples was drawn in each resample [resamples, n]."""
    draws = np.random.default_rng(seed).integers(0, n, size=(resamples, n))
    counts = [np.bincount(row, minlength=n) for row in draws]
    return np.array(counts, dtype=np.float64).reshape(resamples, n)


def plain_and_resampled(n: int, resamples: int, seed: int) -> Floats:
    """Counts [1 + resamples, n]: every example once, then the resamples."""
    return np.vstack([np.ones((1, n)), bootstrap_counts(n, resamples, seed)])


def weighted_means(values: Floats, counts: Floats) -> Floats:
    """Means over examples under each row of counts [resamples, heads], NaN left out.

    Args:
        values: [examples, heads].
        counts: [resamples, examples].
    """
    present = np.isfinite(values)
    total = counts @ np.where(present, values, 0.0)
    number = counts @ present.astype(np.float64)
    return np.divide(total, number, out=np.full_like(total, np.nan), where=number > 0)


def interval(samples: Floats) -> tuple[Floats, Floats]:
    """95 % percentile interval over the first axis, NaN left out; NaN where nothing is left."""
    low, high = np.full((2, *samples.shape[1:]), np.nan)
    present = np.isfinite(samples)
    whole, some = present.all(0) & (len(samples) > 0), present.any(0)
    if whole.any():  # much faster than nanpercentile
        low[whole], high[whole] = np.percentile(samples[:, whole], [2.5, 97.5], axis=0)
    some &= ~whole
    if some.any():
        low[some], high[some] = np.nanpercentile(samples[:, some], [2.5, 97.5], axis=0)
    return low, high


def spearman(first: Floats, second: Floats) -> Floats:
    """Rank correlation of each row of two tables [rows, heads], ties at their mean rank.

    Heads without a value in either are left out of a row; NaN for a constant row or fewer than
    three heads.
    """
    both = np.isfinite(first) & np.isfinite(second)
    with np.errstate(invalid="ignore", divide="ignore"):
        ranks = [
            rankdata(np.where(both, table, np.nan), axis=1, nan_policy="omit")
            for table in (first, second)
        ]
        centred = [r - np.nanmean(r, axis=1, keepdims=True) for r in ranks]
        a, b = (np.where(both, c, 0.0) for c in centred)
        rho: Floats = (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return np.where(both.sum(1) >= 3, rho, np.nan)

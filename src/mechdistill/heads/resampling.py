"""Means over examples and their resamples, for tables of heads.

An example is the unit: positions are averaged within it first, so that long traces do not
dominate, and resampling draws whole examples.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata, t

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


def each_left_out(n: int) -> Floats:
    """Counts [n, n]: in each row another example is missing."""
    return np.ones((n, n)) - np.eye(n)


def correlation_interval(plain: float, *left_out: Floats) -> tuple[float, float]:
    """95 % jackknife interval of a correlation of means, about its plain value.

    Resampled means are noisier than the means themselves, so that bootstrapped correlations lie
    below the plain one, which a percentile interval of few examples may not even hold.

    Args:
        plain: the correlation.
        left_out: for each independent sample of examples, the correlation without each of them.

    Returns:
        ends within -1 and 1; NaN where the plain value or a sample of two is lacking.
    """
    samples = [values[np.isfinite(values)] for values in left_out]
    fewest = min(len(values) for values in samples)
    if not np.isfinite(plain) or fewest < 2:
        return float("nan"), float("nan")
    variance = sum((len(values) - 1) * float(np.var(values)) for values in samples)
    half = float(t.ppf(0.975, fewest - 1)) * variance**0.5
    return max(plain - half, -1.0), min(plain + half, 1.0)


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


def standard_ranks(table: Floats) -> Floats:
    """Ranks of the heads in each row [rows, heads], ties at their mean rank, mean 0 and length 1.

    The product sum of two such rows is their Spearman correlation. A row that is constant or lacks
    the value of a head is NaN throughout.
    """
    ranks = rankdata(table, axis=1)
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    length = np.sqrt(np.square(centred).sum(axis=1, keepdims=True))
    defined = np.isfinite(table).all(axis=1, keepdims=True) & (length > 0)
    standard: Floats = np.divide(centred, length, out=np.full_like(centred, np.nan), where=defined)
    return standard


def spearman(first: Floats, second: Floats) -> Floats:
    """Rank correlation of each row of two tables [rows, heads]; NaN as in `standard_ranks`."""
    rho: Floats = (standard_ranks(first) * standard_ranks(second)).sum(axis=1)
    return rho

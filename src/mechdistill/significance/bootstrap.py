"""Paired bootstrap of the difference between two methods, over documents and seeds (App. E).

A score is a function of counts summed over documents: a mean is (sum of values) / (number of
values), micro-F1 is made of summed hits and misses, corpus BLEU of summed n-gram counts. So each
document contributes a row of statistics, and a resample is a matrix product with how often each
document was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Array = npt.NDArray[np.float64]
Statistics = Sequence[npt.NDArray[np.float64] | csr_array]
"""Arrays [documents, ...] of one model, which sum over documents."""
Reduce = Callable[..., Array]
"""From the summed arrays, each with a leading axis of resamples, to scores [resamples]."""

DETECTABLE = 2.8
"""Standard errors of the smallest difference that a two-sided 5 % test finds in 80 % of studies
(1.96 + 0.84)."""


class Resamples(NamedTuple):
    """How often each document and each seed is drawn, one row a resample; shared by all pairs."""

    documents: Array
    seeds: Array


class Difference(NamedTuple):
    """A difference between two methods, seeds averaged.

    `p` is two-sided: twice the smaller share of resamples at or beyond 0, at least 2 / (B + 1).
    """

    point: float
    mean: float
    low: float
    high: float
    standard_error: float
    p: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies strictly on one side of 0."""
        return self.low > 0 or self.high < 0

    @property
    def detectable(self) -> float:
        """The smallest true difference that this comparison could be trusted to find."""
        return DETECTABLE * self.standard_error


def draw(documents: int, seeds: int, resamples: int, seed: int) -> Resamples:
    """Draw documents and seeds with replacement, independently of each other.

    The seeds of two methods are resampled as pairs: seed s of both starts from one base model and
    sees the same order of data. A single seed is always drawn.
    """
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, documents, size=(resamples, documents))
    columns = rng.integers(0, seeds, size=(resamples, seeds))
    return Resamples(_counts(rows, documents), _counts(columns, seeds))


def resampled_scores(
    statistics: Sequence[Statistics], reduce: Reduce, resamples: Resamples
) -> Array:
    """Score of each resample of documents, for each seed: [resamples, seeds]."""
    return np.stack(
        [reduce(*(resamples.documents @ array for array in one)) for one in statistics], axis=-1
    )


def point_scores(statistics: Sequence[Statistics], reduce: Reduce) -> Array:
    """Score on all documents as they are, for each seed: [seeds]."""
    return np.array([reduce(*(_total(array) for array in one))[0] for one in statistics])


def paired_difference(
    new: Sequence[Statistics], base: Sequence[Statistics], reduce: Reduce, resamples: Resamples
) -> Difference:
    """Difference new - base of a score over paired documents and seeds.

    Args:
        new: statistics of each seed's model.
        base: likewise, the same seeds in the same order.
        reduce: from summed statistics to the score.
        resamples: of as many documents and seeds.
    """
    differences = resampled_scores(new, reduce, resamples) - resampled_scores(
        base, reduce, resamples
    )
    point = point_scores(new, reduce) - point_scores(base, reduce)
    return summarise(
        seed_mean(differences, resamples.seeds), float(seed_mean(point, np.ones(len(point))))
    )


def summarise(differences: Array, point: float) -> Difference:
    """Percentile interval and the rest from resampled differences [resamples].

    A resample in which the score is undefined (nan) is left out.
    """
    d = differences[~np.isnan(differences)]
    if not len(d):
        return Difference(point, *[float("nan")] * 5)
    low, high = np.percentile(d, [2.5, 97.5])
    tail = min(int((d <= 0).sum()), int((d >= 0).sum()))
    p = min(1.0, 2 * (tail + 1) / (len(d) + 1))
    return Difference(
        point, float(d.mean()), float(low), float(high), float(d.std(ddof=1)), float(p)
    )


def mean_of(value: Array, defined: Array) -> Array:
    """The plain mean as a function of summed values and of how many there were."""
    none = defined == 0
    mean: Array = np.where(none, np.nan, value / np.where(none, 1.0, defined))
    return mean


def seed_mean(scores: Array, drawn: Array) -> Array:
    """Mean over seeds of scores [..., seeds] as often as each is drawn, undefined ones left out."""
    defined = ~np.isnan(scores)
    weight = (drawn * defined).sum(-1)
    return mean_of((drawn * np.where(defined, scores, 0.0)).sum(-1), weight)


def _counts(drawn: npt.NDArray[np.int64], kinds: int) -> Array:
    counts = np.zeros((len(drawn), kinds))
    np.add.at(counts, (np.arange(len(drawn))[:, None], drawn), 1.0)
    return counts


def _total(array: npt.NDArray[np.float64] | csr_array) -> Array:
    total: Array = np.ones((1, array.shape[0])) @ array
    return total

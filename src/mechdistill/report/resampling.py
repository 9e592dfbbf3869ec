"""Percentile bootstrap for the report: one index matrix a call, seeded, vectorised.

The unit of resampling is the note. Where several training seeds are compared, seeds are drawn
too, so that the interval covers both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mechdistill.report.verdicts import Estimate
from mechdistill.significance.bootstrap import Resamples, draw, mean_of

LEVELS = (2.5, 97.5)


@dataclass(frozen=True)
class Bootstrap:
    """How often, and from which seed."""

    resamples: int
    seed: int

    def mean(self, values: pd.Series, unit: str) -> Estimate:
        """Mean of one value a note; missing values are dropped first."""
        known = values.dropna().to_numpy(dtype=float)
        return self.statistic(known, lambda sample: sample.mean(axis=-1), unit)

    def statistic(
        self, values: np.ndarray, of: Callable[[np.ndarray], np.ndarray], unit: str
    ) -> Estimate:
        """A statistic of notes.

        Args:
            values: [n, ...], first axis notes.
            of: maps [B, n, ...] or, for one-dimensional values, [B, n] to [B].
            unit: of the statistic.
        """
        n = len(values)
        if n == 0:
            return Estimate(float("nan"), float("nan"), float("nan"), 0, unit)
        rng = np.random.default_rng(self.seed)
        drawn = of(values[rng.integers(0, n, size=(self.resamples, n))])
        effect = float(of(values[None])[0])
        return Estimate(effect, *_interval(drawn), n, unit)

    def grid(self, values: np.ndarray, unit: str) -> Estimate:
        """Mean over seeds and notes of `values` [seeds, notes]; both are resampled, NaN skipped."""
        return self.grids([values], lambda means: means[0], unit)

    def grids(
        self,
        values: list[np.ndarray],
        combine: Callable[[list[np.ndarray]], np.ndarray],
        unit: str,
    ) -> Estimate:
        """A function of several grids' means, all resampled with the same seeds and notes.

        Args:
            values: arrays [seeds, notes]; a grid of one seed (the teacher) is never resampled
                along it.
            combine: maps the list of means, each [B], to [B].
            unit: of the result.
        """
        notes = values[0].shape[1]
        if notes == 0 or any(np.isnan(v).all() for v in values):
            return Estimate(float("nan"), float("nan"), float("nan"), 0, unit)
        drawn = draw(notes, max(len(v) for v in values), self.resamples, self.seed)
        effect = float(combine([np.array([np.nanmean(v)]) for v in values])[0])
        combined = combine([_means(v, drawn) for v in values])
        return Estimate(effect, *_interval(combined), notes, unit)


def _means(values: np.ndarray, drawn: Resamples) -> np.ndarray:
    """Mean of `values` [seeds, notes] over the drawn seeds and notes: [resamples]."""
    seeds = drawn.seeds if len(values) > 1 else np.ones((len(drawn.seeds), 1))
    known = ~np.isnan(values)
    total = (seeds @ np.where(known, values, 0.0) * drawn.documents).sum(axis=1)
    weight = (seeds @ known.astype(float) * drawn.documents).sum(axis=1)
    return mean_of(total, weight)


def _interval(drawn: np.ndarray) -> tuple[float, float]:
    known = drawn[np.isfinite(drawn)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, LEVELS)
    return float(low), float(high)

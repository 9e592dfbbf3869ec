"""Wilcoxon's signed-rank test on paired per-document scores (App. E)."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

EXACT_UP_TO = 50
"""Pairs up to which the exact distribution is used, as in SciPy's own choice."""
FLIPS_UP_TO = 13
"""Pairs up to which, with ties or zeros, all 2^n flips of sign are counted."""
DIGITS = 12
"""Differences are rounded to as many digits: float noise would break ties and zeros."""


class WilcoxonResult(NamedTuple):
    """`statistic` is min(W+, W-); `degenerate` marks that no difference is left to test."""

    statistic: float
    p: float
    n: int
    degenerate: bool


def wilcoxon(differences: npt.NDArray[np.float64]) -> WilcoxonResult:
    """Two-sided test of paired differences [documents], zeros dropped, ties averaged.

    Exact distribution up to `EXACT_UP_TO` pairs without ties or zeros; with them, all flips of
    sign up to `FLIPS_UP_TO` pairs; else the normal approximation with tie correction and without
    continuity correction. The choice is made here and not by SciPy, whose own has changed between
    versions. All zeros: p = 1.

    Raises:
        ValueError: a difference is nan.
    """
    d = np.round(np.asarray(differences, dtype=np.float64), DIGITS)
    if np.isnan(d).any():
        raise ValueError("a paired difference is nan: drop undefined pairs before the test")
    used = d[d != 0]
    if not len(used):
        return WilcoxonResult(0.0, 1.0, 0, True)
    plain = len(used) == len(d) and len(np.unique(np.abs(d))) == len(d)
    if not plain and len(used) <= FLIPS_UP_TO:
        return WilcoxonResult(*_all_flips(used), len(used), False)
    method: Any = "exact" if plain and len(d) <= EXACT_UP_TO else "asymptotic"
    result: Any = stats.wilcoxon(used, zero_method="wilcox", correction=False, method=method)
    return WilcoxonResult(float(result.statistic), float(result.pvalue), len(used), False)


def _all_flips(d: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Statistic and p from every assignment of signs to the ranks of |d|."""
    ranks = stats.rankdata(np.abs(d))
    flips = np.array(list(itertools.product((0.0, 1.0), repeat=len(d))))
    null = flips @ ranks  # W+ of every assignment; half ranks are exact in floats
    positive = ranks[d > 0].sum()
    tail = min((null <= positive).mean(), (null >= positive).mean())
    return float(min(positive, ranks.sum() - positive)), float(min(1.0, 2 * tail))

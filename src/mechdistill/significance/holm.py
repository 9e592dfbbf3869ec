"""Holm's correction for many tests of one family."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def holm(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Adjusted p-values [m], which hold the family-wise error; nan stays nan and is not counted.

    p_(i) sorted ascending becomes max over j <= i of min(1, (m - j + 1) p_(j)).

    >>> holm(np.array([0.01, 0.04, 0.03, 0.005])).round(3)
    array([0.03, 0.06, 0.06, 0.02])
    """
    p = np.asarray(p, dtype=np.float64)
    adjusted = np.full(len(p), np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return adjusted

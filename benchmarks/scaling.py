"""How costs grow: powers fitted to measured times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Power:
    """cost = scale * size ** exponent, by least squares of the logarithms.

    Args:
        error: standard error of the exponent; NaN of two sizes, which any power fits.
    """

    scale: float
    exponent: float
    error: float

    def at(self, sizes: np.ndarray) -> np.ndarray:
        """The fitted costs."""
        return self.scale * sizes**self.exponent


def fit_power(sizes: Sequence[float], costs: Sequence[float]) -> Power:
    """Fit at least two different sizes.

    Raises:
        ValueError: too few sizes, or a cost that is not positive.

    >>> fit_power([1, 2, 4], [3.0, 12.0, 48.0]).exponent
    2.0
    """
    x, y = np.log(np.asarray(sizes, float)), np.asarray(costs, float)
    if len(np.unique(x)) < 2 or (y <= 0).any():
        raise ValueError(f"no power can be fitted to costs {list(y)} at sizes {list(sizes)}")
    y = np.log(y)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    rest = y - y.mean() - slope * centred
    free = len(x) - 2
    error = float(np.sqrt(rest @ rest / free / (centred @ centred))) if free else float("nan")
    return Power(float(np.exp(y.mean() - slope * x.mean())), round(slope, 12), error)

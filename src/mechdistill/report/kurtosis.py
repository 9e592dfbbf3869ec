"""The paper's kurtosis as printed, eps inside the square, to see what eps does to it."""

from __future__ import annotations

import numpy as np


def excess_kurtosis(row: np.ndarray, eps: float) -> float:
    """Excess kurtosis of an attention row over its keys (App. B); NaN for a constant row, eps 0.

    >>> round(excess_kurtosis(np.array([1.0, 0, 0, 0, 0, 0, 0, 0]), eps=0.0), 3)
    3.143
    """
    away = row - row.mean()
    variance = float((away**2).mean()) + eps
    return float((away**4).mean()) / variance**2 - 3 if variance > 0 else float("nan")

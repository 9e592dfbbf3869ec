"""Heads that exceed their nulls, and how many two sets share by chance."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd
from scipy import stats


def heads_above_null(effects: pd.DataFrame) -> list[tuple[int, int]]:
    """Layer and head of rows of `mechdistill.patching.calibration.calibrate`, in their order."""
    rows = effects[effects["above_null"].astype(bool)]
    return [(int(a), int(b)) for a, b in zip(rows["layer"], rows["head"], strict=True)]


def shared_by_chance(
    first: Collection[tuple[int, int]], second: Collection[tuple[int, int]], every: int
) -> dict[str, float]:
    """Heads that two sets share, against two sets drawn from all `every` heads.

    Returns:
        shared, expected, p (two-sided, hypergeometric: twice the smaller tail).
    """
    shared = len({*first} & {*second})
    chance = stats.hypergeom(every, len(first), len(second))
    tail = min(chance.cdf(shared), chance.sf(shared - 1))
    expected = len(first) * len(second) / every
    return {"shared": shared, "expected": expected, "p": min(1.0, 2 * float(tail))}

"""Head rankings: which heads, how deep, and what chance alone would give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from mechdistill.report.evidence import NotTested
from mechdistill.report.verdicts import Estimate

PRIMARY = {1: ("coarse", "unembed", "out"), 2: ("refine", "", "")}
"""Phase -> score, anchor space, sinks: the ranking that the study treats as the paper's."""
NAMES = {1: "CoarseScore", 2: "RefineScore"}

Head = tuple[int, int]


def ranked_heads(
    rankings: pd.DataFrame,
    phase: int,
    score: str | None = None,
    anchor: str | None = None,
    sinks: str | None = None,
    model: str = "teacher",
) -> list[Head]:
    """(layer, head) from rank 1 down; the phase's primary score unless one is named.

    Raises:
        NotTested: there is no such ranking.
    """
    default = PRIMARY[phase]
    wanted = (
        score or default[0],
        default[1] if anchor is None else anchor,
        default[2] if sinks is None else sinks,
    )
    chosen = rankings[(rankings["model"] == model) & (rankings["phase"] == phase)]
    for column, value in zip(("score", "anchor", "sinks"), wanted, strict=True):
        chosen = chosen[chosen[column].fillna("") == value]
    if chosen.empty:
        raise NotTested(f"there is no phase-{phase} ranking by {' '.join(filter(None, wanted))}")
    ordered = chosen.sort_values("rank")
    return [
        (int(layer), int(head))
        for layer, head in zip(ordered["layer"], ordered["head"], strict=True)
    ]


def top_size(heads: int) -> int:
    """How many heads "the top" means: the paper's 10, at most a quarter of what there is."""
    return max(1, min(10, heads // 4))


def depth(head: Head, layers: int) -> float:
    """Depth of a head's layer in (0, 1]: 1 is the last layer (layers count from 0)."""
    return (head[0] + 1) / layers


def against_chance(
    observed: float,
    draw: Callable[[np.random.Generator], float],
    n: int,
    unit: str,
    draws: int,
    seed: int,
) -> Estimate:
    """The observed statistic less its mean under chance, with chance's own 95 % range around it.

    The interval excludes 0 exactly if the observed value lies outside the middle 95 % of the
    draws: a permutation test written as an interval.
    """
    rng = np.random.default_rng(seed)
    null = np.array([draw(rng) for _ in range(draws)])
    low, high = np.percentile(null, [2.5, 97.5])
    center = float(null.mean())
    # a draw equal to the observed value is not beyond chance: the interval must touch 0
    return Estimate(observed - center, float(observed - high), float(observed - low), n, unit)


def jaccard(one: list[Head], other: list[Head]) -> float:
    """Shared heads over all heads of two sets."""
    a, b = set(one), set(other)
    return len(a & b) / len(a | b)


def name(head: Head) -> str:
    """`L3H22`: layer 3 and head 22, both counted from 0."""
    return f"L{head[0]}H{head[1]}"

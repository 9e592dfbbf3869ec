"""Precision at k of ranked labels, plain and weighted by inverse propensity (Jain et al. 2016)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Label = TypeVar("Label", str, int)
Array = npt.NDArray[np.float64]


def precision_at(ranking: Sequence[Label], gold: Collection[Label], k: int) -> float:
    """Share of the first k places that hold a gold label.

    The divisor is k even if the ranking or the gold set is shorter; no gold label gives 0.
    `ranking` holds no label twice (`predictions.normalise`).
    """
    return sum(label in gold for label in ranking[:k]) / k


def rank_by_score(scores: Sequence[float]) -> list[int]:
    """Label ids by falling score, ties by id."""
    return [int(i) for i in np.argsort(-np.asarray(scores), kind="stable")]


def inverse_propensity(
    training_counts: Mapping[Label, int], documents: int, a: float = 0.55, b: float = 1.5
) -> dict[Label, float]:
    """Weight 1/p = 1 + C (N_l + B)^-A of each label, C = (ln N - 1)(B + 1)^A.

    Args:
        training_counts: N_l, documents of the training split with label l; 0 for unseen labels.
        documents: N, size of the training split.
        a: A, and b: B, constants of the data set (0.55 and 1.5 where none are published).

    Raises:
        ValueError: fewer than 3 documents, where the weights would favour frequent labels.
    """
    if documents < 3:
        raise ValueError(f"propensities need at least 3 training documents, there are {documents}")
    c = (math.log(documents) - 1) * (b + 1) ** a
    return {label: 1 + c * (count + b) ** -a for label, count in training_counts.items()}


def weighted_hits(
    ranking: Sequence[Label], gold: Collection[Label], weights: Mapping[Label, float], k: int
) -> tuple[float, float]:
    """One document's summands of PSP@k: the weight it gained and the most that it could gain.

    PSP@k of a split is the ratio of their sums, not the mean of ratios; both are 0 without gold.
    """
    gained = sum(weights[label] for label in ranking[:k] if label in gold) / k
    best = sum(sorted((weights[label] for label in gold), reverse=True)[:k]) / k
    return gained, best


def psp_at(
    rankings: Sequence[Sequence[Label]],
    gold: Sequence[Collection[Label]],
    weights: Mapping[Label, float],
    k: int,
) -> float:
    """PSP@k of a split; nan if no document has a gold label."""
    pairs = [weighted_hits(r, g, weights, k) for r, g in zip(rankings, gold, strict=True)]
    best = sum(b for _, b in pairs)
    return sum(g for g, _ in pairs) / best if best else float("nan")

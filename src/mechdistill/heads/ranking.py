"""From measurements of single examples to scores with intervals, and from scores to ranks."""

from __future__ import annotations

from typing import cast

import numpy as np
import pandas as pd

from mechdistill.heads.resampling import (
    Floats,
    example_matrix,
    interval,
    plain_and_resampled,
    weighted_means,
)

VARIANT = ["model", "phase", "score", "anchor", "sinks"]
"""Columns that name one score variant of one model."""

Variant = tuple[str, int, str, str, str]
"""Values of those columns."""


def examples_of(measurements: pd.DataFrame) -> list[str]:
    """The examples measured, sorted."""
    return sorted(measurements["example"].unique())


def heads_of(measurements: pd.DataFrame) -> pd.MultiIndex:
    """The (layer, head) pairs measured, sorted."""
    pairs = measurements[["layer", "head"]].drop_duplicates().sort_values(["layer", "head"])
    return pd.MultiIndex.from_frame(pairs)


def mean_scores(measurements: pd.DataFrame, counts: Floats) -> dict[Variant, Floats]:
    """Mean score of each head under each weighting of the examples.

    Adds to the variants measured the products of mean factors (`coarse_of_means`,
    `refine_of_means`), which differ from the means of products (Eqs. 1, 3) by the factors'
    covariance.

    Args:
        measurements: see `mechdistill.heads.measure.measure_heads`.
        counts: weights [weightings, examples], in the order of `examples_of`.

    Returns:
        variant -> [weightings, heads], in the order of `heads_of`; NaN where no example counts.
    """
    means = {key: weighted_means(table, counts) for key, table in _tables(measurements).items()}
    for key, (first, second) in _products_of_means(list(means)).items():
        means[key] = means[first] * means[second]
    return means


def score_heads(measurements: pd.DataFrame, *, resamples: int, seed: int) -> pd.DataFrame:
    """Mean score of each head over examples, with 95 % bootstrap intervals over examples.

    Args:
        measurements: see `mechdistill.heads.measure.measure_heads`.
        resamples: of the bootstrap.
        seed: of the bootstrap; all variants share the resamples.

    Returns:
        VARIANT columns, layer, head, value, ci_low, ci_high and n, the number of examples in
        which the head has a value (for products of means, the smaller of the factors'); value is
        null where n is 0.
    """
    heads = heads_of(measurements).to_frame(index=False)
    count = len(examples_of(measurements))
    means = mean_scores(measurements, plain_and_resampled(count, resamples, seed))
    numbers = {key: np.isfinite(table).sum(0) for key, table in _tables(measurements).items()}
    for key, (first, second) in _products_of_means(list(numbers)).items():
        numbers[key] = np.minimum(numbers[first], numbers[second])
    parts = []
    for key in sorted(means):
        low, high = interval(means[key][1:])
        part = heads.assign(value=means[key][0], ci_low=low, ci_high=high, n=numbers[key])
        part[VARIANT] = key
        parts.append(part)
    columns = [*VARIANT, "layer", "head", "value", "ci_low", "ci_high", "n"]
    return pd.concat(parts, ignore_index=True)[columns]


def rank_heads(head_scores: pd.DataFrame) -> pd.DataFrame:
    """Heads of each variant from the highest value (rank 1) down; ties by layer and head.

    Heads without a value have no rank. `factors_positive` says whether both mean factors of the
    printed product are positive: two negative factors give a high score as well, but of a head
    that is neither sharp nor aligned (or looks away and narrows the margin).

    Returns:
        VARIANT columns, rank, layer, head, factors_positive.
    """
    ranked = head_scores.dropna(subset="value").sort_values(
        [*VARIANT, "value", "layer", "head"], ascending=[True] * 5 + [False, True, True]
    )
    ranked = ranked.assign(rank=ranked.groupby(VARIANT).cumcount() + 1)
    good = {
        (model, phase, *head)
        for (model, phase), rows in head_scores.groupby(["model", "phase"])
        for head in positive_heads(rows, cast(int, phase))
    }
    named = ranked[["model", "phase", "layer", "head"]].itertuples(index=False, name=None)
    ranked = ranked.assign(factors_positive=[row in good for row in named])
    return ranked[[*VARIANT, "rank", "layer", "head", "factors_positive"]].reset_index(drop=True)


FACTORS = {
    1: (("kurtosis", "", "out"), ("cosine", "unembed", "")),
    2: (("loop", "", ""), ("help", "", "")),
}
"""(score, anchor, sinks) of the two factors of each phase's primary score."""

PRIMARY = {1: ("coarse", "unembed", "out"), 2: ("refine", "", "")}
"""(score, anchor, sinks) of the score by which each phase's pool is chosen."""


def head_values(head_scores: pd.DataFrame, variant: tuple[str, str, str]) -> pd.Series:
    """Values of one (score, anchor, sinks), indexed by (layer, head)."""
    chosen = (head_scores[["score", "anchor", "sinks"]] == list(variant)).all(axis=1)
    return head_scores[chosen].set_index(["layer", "head"])["value"]


def positive_heads(head_scores: pd.DataFrame, phase: int) -> set[tuple[int, int]]:
    """Heads whose mean factors are both above zero, from one model's scores of one phase."""
    first, second = (head_values(head_scores, factor) for factor in FACTORS[phase])
    both = (first > 0) & (second.reindex(first.index) > 0)
    return {(int(layer), int(head)) for layer, head in first.index[both]}


def _tables(measurements: pd.DataFrame) -> dict[Variant, Floats]:
    """Each variant's values [examples, heads]."""
    examples, heads = examples_of(measurements), heads_of(measurements)
    return {
        cast(Variant, key): example_matrix(rows, examples, heads)
        for key, rows in measurements.groupby(VARIANT, sort=True)
    }


def _products_of_means(variants: list[Variant]) -> dict[Variant, tuple[Variant, Variant]]:
    """Derived variant -> its two factor variants."""
    derived: dict[Variant, tuple[Variant, Variant]] = {}
    for model, phase, score, anchor, sinks in variants:
        if score == "coarse":
            derived[model, phase, "coarse_of_means", anchor, sinks] = (
                (model, phase, "kurtosis", "", sinks),
                (model, phase, "cosine", anchor, ""),
            )
        if score == "refine":
            derived[model, phase, "refine_of_means", anchor, sinks] = (
                (model, phase, "loop", "", ""),
                (model, phase, "help", "", ""),
            )
    return derived

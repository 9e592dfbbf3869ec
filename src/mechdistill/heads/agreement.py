"""Does a score rank heads as their causal effects do?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mechdistill.heads.ranking import VARIANT, examples_of, heads_of, mean_scores
from mechdistill.heads.resampling import (
    Floats,
    correlation_interval,
    each_left_out,
    example_matrix,
    interval,
    plain_and_resampled,
    standard_ranks,
    weighted_means,
)

SHAM = "K0"
"""Twin whose changed words matter to no decision: it has no effect to agree with."""
CONDITION = ["phase", "twin", "site", "metric", "direction"]
"""Columns that name a kind of causal effect."""


def causal_effects(single_heads: pd.DataFrame) -> pd.DataFrame:
    """How far patching one head moves the margin across the clean-corrupted gap.

    Denoise: patched - corrupted; noise: clean - patched; ``mean`` is the mean of the two. The gap
    itself is not divided by: it is the same for every head, and ranks do not see it.

    Args:
        single_heads: columns phase, twin, site, direction, layer, head, example, event, metric,
            clean, corrupted, patched.

    Returns:
        phase, twin, site, metric, direction (denoise, noise, mean), layer, head, example, value
        (mean over the example's events of this metric, in logits).
    """
    rows = single_heads[single_heads["twin"] != SHAM]
    effect = np.where(
        rows["direction"] == "denoise",
        rows["patched"] - rows["corrupted"],
        rows["clean"] - rows["patched"],
    )
    cell = ["phase", "twin", "site", "metric", "layer", "head", "example"]
    effects = rows.assign(value=effect)
    each = effects.groupby([*cell, "direction"], sort=True)["value"].mean().reset_index()
    both = each.groupby(cell, sort=True)["value"].mean().reset_index()
    return pd.concat([each, both.assign(direction="mean")], ignore_index=True)


def agreement_with_causal_effects(
    measurements: pd.DataFrame, single_heads: pd.DataFrame, *, top: int, resamples: int, seed: int
) -> pd.DataFrame:
    """How far each score variant agrees over heads with single-head causal effects.

    ``spearman`` counts all heads alike, and most heads do nothing, in an order of chance.
    ``captured`` looks at the other end: the effects of the `top` heads of highest score, summed,
    as a share of what the `top` heads of largest effect have.

    Scores come from the ranking examples, effects from the patching examples; the intervals
    (jackknife of ``spearman``, percentile bootstrap of ``captured``) draw on both, each for itself.

    Args:
        measurements: of one model, see `mechdistill.heads.measure.measure_heads`.
        single_heads: see `causal_effects`.
        top: number of heads for ``captured``.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Returns:
        phase, score, anchor, sinks, twin, site, metric, direction, spearman, ci_low, ci_high,
        captured, captured_low, captured_high, n (patching examples), n_heads; null where the
        score is the same for all heads.
    """
    heads = heads_of(measurements)
    count = len(examples_of(measurements))
    scores = mean_scores(measurements, plain_and_resampled(count, resamples, seed))
    scores_left_out = mean_scores(measurements, each_left_out(count))
    # a seed of its own: the two samples of examples are drawn independently
    effects = dict(_effect_means(single_heads, heads, resamples, seed + 1))
    effect_ranks = {
        condition: (standard_ranks(means[:1]), standard_ranks(left_out))
        for condition, (means, left_out) in effects.items()
    }
    records = []
    for key, score in sorted(scores.items()):
        variant = dict(zip(VARIANT, key, strict=True))
        score_ranks = standard_ranks(score[:1]), standard_ranks(scores_left_out[key])
        for condition, (effect, _) in effects.items():
            if condition[0] != variant["phase"]:
                continue
            ranks, ranks_left_out = effect_ranks[condition]
            rho = float((score_ranks[0] * ranks).sum())  # Spearman's
            low, high = correlation_interval(
                rho,
                (score_ranks[1] * ranks).sum(axis=1),
                (score_ranks[0] * ranks_left_out).sum(axis=1),
            )
            share = captured_effect(score, effect, top)
            records.append(
                {name: variant[name] for name in VARIANT[1:]}
                | dict(zip(CONDITION, condition, strict=True))
                | {"spearman": rho, "ci_low": low, "ci_high": high}
                | _with_interval(share, "captured", "captured_low", "captured_high")
                | {"n": len(ranks_left_out), "n_heads": len(heads)}
            )
    return pd.DataFrame.from_records(records)


def captured_effect(score: Floats, effect: Floats, top: int) -> Floats:
    """Summed effect of the `top` heads by score over that of the `top` heads by effect, per row.

    Args:
        score: [rows, heads].
        effect: [rows, heads].
        top: number of heads (all of them if there are fewer).

    Returns:
        [rows]; NaN where a score is missing or all scores are equal, or where no sum of `top`
        effects is positive.
    """
    top = min(top, score.shape[1])
    last = -np.sort(-score, axis=1)[:, top - 1 : top]
    above, tied = score > last, score == last
    # equal scores share the places that are left: their order would be chance
    share_of_tied = (top - above.sum(1, keepdims=True)) / np.maximum(tied.sum(1, keepdims=True), 1)
    found = (effect * (above + tied * share_of_tied)).sum(axis=1)
    most = -np.sort(-effect, axis=1)[:, :top].sum(axis=1)
    tells = np.isfinite(score).all(axis=1) & (np.ptp(score, axis=1) > 0) & (most > 0)
    share: Floats = np.divide(found, most, out=np.full_like(most, np.nan), where=tells)
    return share


def _with_interval(samples: Floats, *names: str) -> dict[str, float]:
    """Plain value (the first sample) and 95 % interval of the others under three names."""
    low, high = interval(samples[1:, None])
    return dict(zip(names, (float(samples[0]), float(low[0]), float(high[0])), strict=True))


def _effect_means(
    single_heads: pd.DataFrame, heads: pd.MultiIndex, resamples: int, seed: int
) -> Iterator[tuple[tuple[object, ...], tuple[Floats, Floats]]]:
    """Per condition mean effects: [1 + resamples, heads], the plain mean first, and [n, heads].

    The latter are without each of the n examples in turn.
    """
    for key, rows in causal_effects(single_heads).groupby(CONDITION, sort=True):
        examples = sorted(rows["example"].unique())
        effects = example_matrix(rows, examples, heads)
        counts = plain_and_resampled(len(examples), resamples, seed), each_left_out(len(examples))
        yield key, (weighted_means(effects, counts[0]), weighted_means(effects, counts[1]))

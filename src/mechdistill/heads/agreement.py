"""Does a score rank heads as their causal effects do?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mechdistill.heads.ranking import VARIANT, examples_of, heads_of, mean_scores
from mechdistill.heads.resampling import (
    Floats,
    example_matrix,
    interval,
    plain_and_resampled,
    spearman,
    weighted_means,
)

SHAM = "K0"
"""Twin whose changed words matter to no decision: it has no effect to agree with."""


def causal_effects(single_heads: pd.DataFrame) -> pd.DataFrame:
    """How far patching one head moves the margin across the clean-corrupted gap.

    Denoise: patched - corrupted; noise: clean - patched; ``mean`` is the mean of the two. The gap
    itself is not divided by: it is the same for every head, and ranks do not see it.

    Args:
        single_heads: columns phase, twin, site, direction, layer, head, example, event, clean,
            corrupted, patched.

    Returns:
        phase, twin, site, direction (denoise, noise, mean), layer, head, example, value (mean
        over the example's events, in logits).
    """
    rows = single_heads[single_heads["twin"] != SHAM]
    effect = np.where(
        rows["direction"] == "denoise",
        rows["patched"] - rows["corrupted"],
        rows["clean"] - rows["patched"],
    )
    cell = ["phase", "twin", "site", "layer", "head", "example"]
    effects = rows.assign(value=effect)
    each = effects.groupby([*cell, "direction"], sort=True)["value"].mean().reset_index()
    both = each.groupby(cell, sort=True)["value"].mean().reset_index()
    return pd.concat([each, both.assign(direction="mean")], ignore_index=True)


def agreement_with_causal_effects(
    measurements: pd.DataFrame, single_heads: pd.DataFrame, *, resamples: int, seed: int
) -> pd.DataFrame:
    """Spearman correlation over heads of each score variant with single-head causal effects.

    Scores come from the ranking examples, effects from the patching examples; the interval
    resamples both, each for itself.

    Args:
        measurements: of one model, see `mechdistill.heads.measure.measure_heads`.
        single_heads: see `causal_effects`.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Returns:
        phase, score, anchor, sinks, twin, site, direction, spearman, ci_low, ci_high, n (patching
        examples), n_heads; null where the score is the same for all heads.
    """
    heads = heads_of(measurements)
    count = len(examples_of(measurements))
    scores = mean_scores(measurements, plain_and_resampled(count, resamples, seed))
    # a seed of its own: the two samples of examples are drawn independently
    effects = dict(_effect_means(single_heads, heads, resamples, seed + 1))
    records = []
    for key, score in sorted(scores.items()):
        variant = dict(zip(VARIANT, key, strict=True))
        for (phase, twin, site, direction), (effect, n) in effects.items():
            if phase != variant["phase"]:
                continue
            rho = spearman(score, effect)
            low, high = interval(rho[1:, None])
            records.append(
                {name: variant[name] for name in VARIANT[1:]}
                | {"twin": twin, "site": site, "direction": direction}
                | {"spearman": rho[0], "ci_low": low[0], "ci_high": high[0]}
                | {"n": n, "n_heads": len(heads)}
            )
    return pd.DataFrame.from_records(records)


def _effect_means(
    single_heads: pd.DataFrame, heads: pd.MultiIndex, resamples: int, seed: int
) -> Iterator[tuple[tuple[object, ...], tuple[Floats, int]]]:
    """Per condition: mean effects [1 + resamples, heads], the plain mean first, and n."""
    conditions = ["phase", "twin", "site", "direction"]
    for key, rows in causal_effects(single_heads).groupby(conditions, sort=True):
        examples = sorted(rows["example"].unique())
        counts = plain_and_resampled(len(examples), resamples, seed)
        yield key, (weighted_means(example_matrix(rows, examples, heads), counts), len(examples))

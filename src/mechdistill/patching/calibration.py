"""Which heads do more for a decision than their nulls allow, and whether attribution ranks alike.

The example is the unit. A head counts at a kind of decision where its effect exceeds, over
examples, what it does to other tokens *and* what it does to shuffled events: the larger of the two
one-sided p-values, since both must fall (an intersection-union test). Over all heads, the rate of
false discoveries is controlled (Benjamini-Hochberg).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from mechdistill.heads.agreement import captured_effect
from mechdistill.heads.resampling import (
    Floats,
    correlation_interval,
    each_left_out,
    example_matrix,
    interval,
    plain_and_resampled,
    spearman,
    weighted_means,
)
from mechdistill.significance.wilcoxon import wilcoxon

NULLS = ("other_token", "shuffled")
EFFECTS = (
    *("kind", "segment", "layer", "head", "n", "decisions", "margin", "effect", "ci_low"),
    *("ci_high", "attribution", "other_token", "shuffled", "excess", "p", "q", "above_null"),
)
AGREEMENT = (
    *("kind", "segment", "spearman", "ci_low", "ci_high"),
    *("captured", "captured_low", "captured_high", "n", "n_heads"),
)
"""Columns of the two tables."""


def calibrate(ablation: pd.DataFrame, *, level: float, resamples: int, seed: int) -> pd.DataFrame:
    """Every head at every kind of decision, against its own nulls.

    Args:
        ablation: of `mechdistill.patching.head_ablation.ablate_heads`.
        level: rate of false discoveries among the heads that are said to exceed their nulls.
        resamples, seed: of the bootstrap over examples.

    Returns:
        kind, segment, layer, head, n (examples), decisions, margin (plain; the same for all heads),
        effect with ci_low and ci_high, attribution, other_token and shuffled (mean effects there),
        excess (effect less the larger of the two), p, q (adjusted over the heads of this kind and
        segment), above_null (q <= level). Means over examples, in logits. p = 1 where a null has no
        example in common with the events.
    """
    tables = []
    for _, rows in ablation.groupby(["kind", "segment"], sort=False):
        heads = _heads(rows)
        own, examples = _own(rows)
        effect = example_matrix(_value(own, "effect"), examples, heads)
        draws = weighted_means(effect, plain_and_resampled(len(examples), resamples, seed))
        low, high = interval(draws[1:])
        nulls = {name: _null(rows, name, examples, heads) for name in NULLS}
        p = np.max([exceeds(effect - null) for null in nulls.values()], axis=0)
        q = stats.false_discovery_control(p)
        each = own.drop_duplicates("example")
        attribution = example_matrix(_value(own, "attribution"), examples, heads).mean(axis=0)
        means = {name: _mean(null) for name, null in nulls.items()}
        table = rows[["kind", "segment", "layer", "head"]].drop_duplicates(ignore_index=True)
        tables.append(
            table.assign(
                n=len(examples),
                decisions=int(each["decisions"].sum()),
                margin=each["margin"].mean(),
                effect=draws[0],
                ci_low=low,
                ci_high=high,
                attribution=attribution,
                **means,
                excess=draws[0] - np.fmax(*means.values()),
                p=p,
                q=q,
                above_null=q <= level,
            )
        )
    if not tables:
        return pd.DataFrame(columns=list(EFFECTS))
    return pd.concat(tables, ignore_index=True)[list(EFFECTS)]


def exceeds(differences: Floats) -> Floats:
    """One-sided p-values of Wilcoxon's signed-rank test: are the differences above 0?

    Args:
        differences: [examples, heads]; NaN = no pair.

    Returns:
        [heads], 1 where there is no pair or no difference.
    """
    return np.array([_p_above(column[np.isfinite(column)]) for column in differences.T])


def attribution_agreement(
    ablation: pd.DataFrame, *, top: int, resamples: int, seed: int
) -> pd.DataFrame:
    """Whether the first-order estimate ranks heads as exact ablation does, by kind of decision.

    Args:
        ablation: see `calibrate`.
        top: number of heads for ``captured``.
        resamples, seed: of the bootstrap of ``captured`` over examples, which both rankings share.

    Returns:
        kind, segment, spearman with ci_low and ci_high (jackknife over examples), captured (effects
        of the `top` heads of highest attribution, summed, as a share of the `top` largest effects)
        with captured_low and captured_high (bootstrap), n (examples), n_heads.
    """
    records = []
    for (kind, segment), rows in ablation.groupby(["kind", "segment"], sort=False):
        heads = _heads(rows)
        own, examples = _own(rows)
        counts = plain_and_resampled(len(examples), resamples, seed)
        values = [
            example_matrix(_value(own, name), examples, heads) for name in ("effect", "attribution")
        ]
        effect, estimate = (weighted_means(value, counts) for value in values)
        left_out = (weighted_means(value, each_left_out(len(examples))) for value in values)
        rho = float(spearman(estimate[:1], effect[:1])[0])
        low, high = correlation_interval(rho, spearman(*left_out))
        record = {"kind": kind, "segment": segment, "spearman": rho, "ci_low": low, "ci_high": high}
        captured = captured_effect(estimate, effect, top)
        record |= dict(_with_ends("captured", "captured", captured))
        records.append(record | {"n": len(examples), "n_heads": len(heads)})
    return pd.DataFrame.from_records(records, columns=list(AGREEMENT))


def _heads(rows: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(rows[["layer", "head"]].drop_duplicates())


def _own(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Rows of the events themselves, and their examples."""
    own = rows[rows["null"] == ""]
    return own, sorted(own["example"].unique())


def _null(rows: pd.DataFrame, name: str, examples: list[str], heads: pd.MultiIndex) -> Floats:
    return example_matrix(_value(rows[rows["null"] == name], "effect"), examples, heads)


def _value(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    return rows[["example", "layer", "head"]].assign(value=rows[column])


def _mean(values: Floats) -> Floats:
    """Over examples that have one; NaN where none has."""
    mean: Floats = weighted_means(values, np.ones((1, len(values))))[0]
    return mean


def _p_above(differences: Floats) -> float:
    found = wilcoxon(differences)
    p = float(found.p)
    if found.degenerate:
        return 1.0
    ranks = stats.rankdata(np.abs(differences)) * np.sign(differences)
    return p / 2 if ranks.sum() > 0 else 1 - p / 2


def _with_ends(name: str, ends: str, samples: Floats) -> Iterator[tuple[str, float]]:
    """Plain value (the first sample) and 95 % interval of the others."""
    low, high = interval(samples[1:, None])
    yield name, float(samples[0])
    yield f"{ends}_low", float(low[0])
    yield f"{ends}_high", float(high[0])

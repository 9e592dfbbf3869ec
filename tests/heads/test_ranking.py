"""Scores, ranks, reliability and agreement on small tables whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mechdistill.heads.agreement import (
    agreement_with_causal_effects,
    captured_effect,
    causal_effects,
)
from mechdistill.heads.ranking import FACTORS, PRIMARY, positive_heads, rank_heads, score_heads
from mechdistill.heads.reliability import split_half_reliability
from mechdistill.heads.resampling import (
    bootstrap_counts,
    correlation_interval,
    each_left_out,
    interval,
    plain_and_resampled,
    spearman,
    weighted_means,
)

LAYERS, HEADS, EXAMPLES = 2, 3, 12


def measured(values, phase=1, score="attention_evidence", anchor="", sinks=""):
    """Long rows from values [examples, LAYERS * HEADS]."""
    n = len(values)
    return pd.DataFrame(
        {
            "model": "teacher",
            "phase": phase,
            "score": score,
            "anchor": anchor,
            "sinks": sinks,
            "layer": np.tile(np.repeat(np.arange(LAYERS), HEADS), n),
            "head": np.tile(np.arange(HEADS), LAYERS * n),
            "example": np.repeat([f"r{i:02d}" for i in range(n)], LAYERS * HEADS),
            "value": np.asarray(values, dtype=float).ravel(),
        }
    )


def both_phases(seed=0, noise=0.1):
    """Factors and products of both phases around known head means."""
    rng = np.random.default_rng(seed)
    parts = []
    for phase in (1, 2):
        factors = []
        for score, anchor, sinks in FACTORS[phase]:
            factor = np.linspace(-1, 1, LAYERS * HEADS) + noise * rng.normal(
                size=(EXAMPLES, LAYERS * HEADS)
            )
            factors.append(factor)
            parts.append(measured(factor, phase, score, anchor, sinks))
        parts.append(measured(factors[0] * factors[1], phase, *PRIMARY[phase]))
    return pd.concat(parts, ignore_index=True)


def rows_of(frame, phase, score):
    return frame[(frame["phase"] == phase) & (frame["score"] == score)]


def test_value_is_the_mean_over_examples_that_have_one():
    values = np.arange(EXAMPLES * 6, dtype=float).reshape(EXAMPLES, 6)
    values[3:, 0] = np.nan
    values[:, 1] = np.nan
    scores = score_heads(measured(values), resamples=50, seed=0)
    np.testing.assert_allclose(scores["value"].iloc[2:], values[:, 2:].mean(0))
    assert scores["value"].iloc[0] == values[:3, 0].mean()
    assert scores["n"].iloc[0] == 3
    assert np.isnan(scores["value"].iloc[1])
    assert scores["n"].iloc[1] == 0


def test_interval_is_scipys_percentile_bootstrap():
    values = np.random.default_rng(1).normal(size=(200, 1))
    means = weighted_means(values, bootstrap_counts(200, 4000, 0))
    low, high = interval(means)
    expected = scipy.stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=4000, method="percentile", rng=1
    ).confidence_interval
    assert low[0] == pytest.approx(expected.low, abs=0.015)
    assert high[0] == pytest.approx(expected.high, abs=0.015)


def test_scores_are_the_same_for_the_same_seed_and_not_for_another():
    frame = both_phases()
    first = score_heads(frame, resamples=40, seed=3)
    pd.testing.assert_frame_equal(first, score_heads(frame, resamples=40, seed=3))
    assert not first["ci_low"].equals(score_heads(frame, resamples=40, seed=4)["ci_low"])


def test_product_of_means_stands_beside_the_mean_of_products():
    frame = both_phases(noise=2.0)
    scores = score_heads(frame, resamples=20, seed=0)
    for phase, names in ((1, ("coarse_of_means", "coarse")), (2, ("refine_of_means", "refine"))):
        first, second = (rows_of(frame, phase, name) for name, *_ in FACTORS[phase])
        means = [f.groupby(["layer", "head"])["value"].mean().to_numpy() for f in (first, second)]
        of_means = rows_of(scores, phase, names[0])["value"].to_numpy()
        np.testing.assert_allclose(of_means, means[0] * means[1])
        assert not np.allclose(of_means, rows_of(scores, phase, names[1])["value"])


def test_ranks_go_from_the_top_and_flag_two_negative_factors():
    scores = score_heads(both_phases(), resamples=20, seed=0)
    ranks = rows_of(rank_heads(scores), 1, "coarse").set_index(["layer", "head"])
    assert ranks.loc[(1, 2), "rank"] in (1, 2)
    assert ranks.loc[(1, 2), "factors_positive"]
    assert ranks.loc[(0, 0), "rank"] in (1, 2)
    assert not ranks.loc[(0, 0), "factors_positive"]
    assert sorted(ranks["rank"]) == [1, 2, 3, 4, 5, 6]
    assert positive_heads(scores[scores["phase"] == 1], 1) == {(1, 0), (1, 1), (1, 2)}


def test_heads_without_a_value_have_no_rank():
    frame = both_phases()
    lost = (frame["score"] == "refine") & (frame["layer"] == 0) & (frame["head"] == 1)
    frame.loc[lost, "value"] = np.nan
    ranks = rows_of(rank_heads(score_heads(frame, resamples=20, seed=0)), 2, "refine")
    assert len(ranks) == LAYERS * HEADS - 1


def test_reliability_tells_signal_from_noise():
    clear = split_half_reliability(both_phases(noise=0.05), splits=100, seed=0)
    rng = np.random.default_rng(0)
    noise = split_half_reliability(measured(rng.normal(size=(40, 6))), splits=100, seed=0)
    assert rows_of(clear, 1, "cosine")["spearman"].item() > 0.95
    assert noise["spearman"].item() < 0.5


def test_reliability_of_a_constant_score_is_undefined():
    constant = split_half_reliability(measured(np.ones((EXAMPLES, 6))), splits=20, seed=0)
    assert constant["spearman"].isna().all()


def effects_table(effect, phase=1, twin="K1"):
    """Patching rows: denoise effects are `effect` [examples, heads], noise effects twice that."""
    rows = measured(effect).drop(columns=["model", "score", "anchor", "sinks"])
    parts = [
        rows.assign(direction="denoise", clean=5.0, corrupted=-5.0, patched=rows["value"] - 5.0),
        rows.assign(direction="noise", clean=5.0, corrupted=-5.0, patched=5.0 - 2 * rows["value"]),
    ]
    frame = pd.concat(parts, ignore_index=True).drop(columns="value")
    return frame.assign(phase=phase, twin=twin, site="output", metric="margin", event=0)


def test_causal_effect_counts_both_directions_and_leaves_the_sham_out():
    effect = np.random.default_rng(0).normal(size=(EXAMPLES, 6))
    table = pd.concat([effects_table(effect), effects_table(effect, twin="K0")])
    effects = causal_effects(table)
    assert set(effects["twin"]) == {"K1"}
    for direction, factor in (("denoise", 1), ("noise", 2), ("mean", 1.5)):
        rows = effects[effects["direction"] == direction]
        wide = rows.pivot(index="example", columns=["layer", "head"], values="value")
        np.testing.assert_allclose(wide.to_numpy(), factor * effect)


def test_events_of_an_example_count_once():
    effect = np.zeros((1, 6))
    table = pd.concat(
        [effects_table(effect).assign(event=0), effects_table(effect + 3.0).assign(event=1)]
    )
    effects = causal_effects(table)
    assert (effects[effects["direction"] == "denoise"]["value"] == 1.5).all()


def test_agreement_is_spearman_over_heads_of_the_two_means():
    rng = np.random.default_rng(2)
    frame, effect = both_phases(noise=1.0), rng.normal(size=(EXAMPLES, 6))
    table = agreement_with_causal_effects(
        frame, effects_table(effect), top=2, resamples=200, seed=0
    )
    assert set(table["phase"]) == {1}  # no effects of phase 2 were given
    for row in table[table["score"].isin(["coarse", "kurtosis"])].itertuples():
        score = rows_of(frame, 1, row.score).groupby(["layer", "head"])["value"].mean()
        expected = scipy.stats.spearmanr(score, effect.mean(0)).statistic
        assert row.spearman == pytest.approx(expected)
        assert row.ci_low <= row.spearman <= row.ci_high
        assert (row.n, row.n_heads) == (EXAMPLES, 6)


def test_interval_of_a_correlation_of_noisy_means_holds_the_true_one():
    """Where the percentile bootstrap holds it in hardly half of the cases."""
    rng, holds, percentiles = np.random.default_rng(0), 0, 0
    for seed in range(100):
        base = rng.normal(size=32)
        true = [base + 0.8 * rng.normal(size=32) for _ in range(2)]
        samples = [mean + 2.0 * rng.normal(size=(n, 32)) for mean, n in zip(true, (40, 10))]
        means = [sample.mean(axis=0, keepdims=True) for sample in samples]
        left_out = [weighted_means(sample, each_left_out(len(sample))) for sample in samples]
        expected = float(spearman(true[0][None], true[1][None])[0])
        plain = float(spearman(*means)[0])
        by_scores = spearman(left_out[0], np.repeat(means[1], 40, axis=0))
        by_effects = spearman(np.repeat(means[0], 10, axis=0), left_out[1])
        low, high = correlation_interval(plain, by_scores, by_effects)
        assert -1 <= low <= plain <= high <= 1
        holds += low <= expected <= high
        drawn = [weighted_means(s, bootstrap_counts(len(s), 200, seed)) for s in samples]
        low, high = np.percentile(spearman(*drawn), [2.5, 97.5])
        percentiles += low <= expected <= high
    assert holds >= 90 > 70 > percentiles


def test_jackknife_of_a_plain_correlation_is_that_of_the_textbook():
    rng = np.random.default_rng(1)
    left_out = rng.uniform(0.4, 0.6, size=12)
    low, high = correlation_interval(0.5, left_out)
    error = np.sqrt(11 / 12 * np.sum((left_out - left_out.mean()) ** 2))
    half = scipy.stats.t.ppf(0.975, 11) * error
    assert (low, high) == pytest.approx((max(0.5 - half, -1), min(0.5 + half, 1)))
    assert np.isnan(correlation_interval(0.5, np.array([0.4]))).all()
    assert np.isnan(correlation_interval(np.nan, left_out)).all()


def test_agreement_of_a_score_with_itself_is_one():
    frame = both_phases(noise=0.01)
    cosine = rows_of(frame, 1, "cosine")["value"].to_numpy().reshape(EXAMPLES, -1)
    table = agreement_with_causal_effects(frame, effects_table(cosine), top=2, resamples=20, seed=0)
    rows = rows_of(table, 1, "cosine")
    assert rows["spearman"].to_numpy() == pytest.approx(1)
    assert rows["captured"].to_numpy() == pytest.approx(1)


def test_captured_share_is_that_of_the_heads_of_highest_score():
    effect = np.array([[8.0, 0.1, 2.0, -0.3]] * 3)
    score = np.array([[9.0, 5.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, np.nan, 2.0]])
    share = captured_effect(score, effect, top=2)
    assert share[0] == pytest.approx(8.1 / 10)
    assert np.isnan(share[1:]).all()  # a constant score and a missing one tell nothing


def test_equal_scores_share_the_captured_effect():
    effect = np.array([[8.0, 1.0, 3.0, 0.0]])
    share = captured_effect(np.array([[2.0, 0.0, 0.0, 0.0]]), effect, top=2)
    assert share[0] == pytest.approx((8 + (1 + 3 + 0) / 3) / 11)


@given(
    arrays(np.float64, (3, 7), elements=st.integers(-3, 3)),
    arrays(np.float64, (3, 7), elements=st.integers(-3, 3)),
)
def test_rank_correlation_of_rows_is_scipys(first, second):
    for row, rho in enumerate(spearman(first, second)):
        constant = np.ptp(first[row]) == 0 or np.ptp(second[row]) == 0
        if constant:
            assert np.isnan(rho)
        else:
            expected = scipy.stats.spearmanr(first[row], second[row]).statistic
            assert rho == pytest.approx(expected)


def test_rank_correlation_needs_the_value_of_every_head():
    table = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]])
    rho = spearman(table, np.array([[1.0, 2.0, 3.0]] * 2))
    assert np.isnan(rho[0])
    assert rho[1] == pytest.approx(1)


def test_first_weighting_counts_every_example_once():
    counts = plain_and_resampled(9, 5, 0)
    assert counts.shape == (6, 9)
    assert (counts[0] == 1).all()
    assert (counts.sum(1) == 9).all()

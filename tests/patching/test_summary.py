"""Summaries against numbers worked by hand and a slow bootstrap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mechdistill.patching.manipulation import margin_gaps, written_gaps
from mechdistill.patching.margin_sweep import EventEffects
from mechdistill.patching.summary import summarise

COLUMNS = ["phase", "twin", "site", "direction", "ranking", "bin", "draw", "example", "metric"]


def rows(values, ranking="top", direction="denoise", metric="margin", draw=0):
    """One row an example from (clean, corrupted, patched)."""
    return [
        (1, "K1", "output", direction, ranking, 3, draw, f"e{i}", metric, *map(float, v))
        for i, v in enumerate(values)
    ]


def summary(*parts, planned=10):
    columns = [*COLUMNS, "clean", "corrupted", "patched"]
    frame = pd.DataFrame([row for part in parts for row in part], columns=columns)
    return summarise(frame, planned, resamples=200, seed=0)


# the paper's own figures: corrupted 24, clean 85; 0.22 and 0.72
@pytest.mark.parametrize(
    ("metric", "direction", "values", "pct_gap", "pct_paper"),
    [
        ("focus", "denoise", (0.85, 0.24, 0.76), 85, 85),
        ("focus", "noise", (0.85, 0.24, 0.25), 98, 71),
        ("confusion", "denoise", (0.22, 0.72, 0.24), 96, 67),
        ("confusion", "noise", (0.22, 0.72, 0.66), 88, 200),
    ],
)
def test_percentages_are_those_of_the_printed_figures(
    metric, direction, values, pct_gap, pct_paper
):
    found = summary(rows([values] * 3, direction=direction, metric=metric)).iloc[0]
    assert round(found["pct_gap"]) == pct_gap
    assert round(found["pct_paper"]) == pct_paper


@pytest.mark.parametrize(
    ("metric", "direction", "sign"),
    [
        ("margin", "denoise", 1),
        ("margin", "noise", -1),
        ("confusion", "denoise", -1),
        ("confusion", "noise", 1),
    ],
)
def test_effect_points_towards_the_claim(metric, direction, sign):
    found = summary(rows([(4, 1, 3), (5, 2, 4)], direction=direction, metric=metric)).iloc[0]
    start = 1.5 if direction == "denoise" else 4.5
    assert found["difference"] == pytest.approx(3.5 - start)
    assert found["effect"] == pytest.approx(sign * (3.5 - start))


def test_margin_has_no_percentage_of_the_paper():
    assert np.isnan(summary(rows([(4, 1, 3), (5, 2, 4)])).iloc[0]["pct_paper"])


def test_no_percentage_without_a_gap():
    found = summary(rows([(1, 3, 2), (3, 1, 2), (2, 2.1, 2)], metric="focus")).iloc[0]
    assert np.isnan(found[["pct_gap", "pct_gap_low", "pct_gap_high", "pct_paper"]].to_list()).all()
    assert np.isfinite(found[["difference", "ci_low", "ci_high"]].to_list()).all()


@pytest.mark.parametrize(
    ("metric", "values"),
    [("focus", (0.3, 0.6, 0.5)), ("confusion", (0.7, 0.4, 0.5)), ("margin", (-2, 1, 0))],
)
def test_no_percentage_where_the_corruption_improves_the_metric(metric, values):
    found = summary(rows([values] * 4, metric=metric)).iloc[0]
    assert found["no_percentage"] == "moves the wrong way"
    assert np.isnan(found[["pct_gap", "pct_gap_low", "pct_gap_high", "pct_paper"]].to_list()).all()


def test_summary_says_whether_the_corruption_moves_the_metric():
    assert summary(rows([(5, 1, 3)] * 4)).iloc[0]["no_percentage"] == ""
    still = summary(rows([(1, 3, 2), (3, 1, 2), (2, 2.1, 2)]))
    assert still.iloc[0]["no_percentage"] == "moves nothing"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("direction", ["denoise", "noise"])
def test_a_level_of_zero_has_no_share_and_raises_no_warning(direction):
    """Confusion that is 0 on the clean side: the paper's noise formula divides by it."""
    found = summary(rows([(0, 0.5, 0.2)] * 3, direction=direction, metric="confusion")).iloc[0]
    assert found["pct_gap"] == pytest.approx(60 if direction == "denoise" else 40)
    assert np.isnan(found["pct_paper"]) == (direction == "noise")


def test_resamples_without_a_gap_are_left_out_of_the_interval():
    values = [(5, 0, 4), (5, 0, 4), (5, 0, 4), (5, 0, 4), (2, 2, 2)]
    found = summary(rows(values)).iloc[0]
    assert np.isfinite(found[["pct_gap_low", "pct_gap_high"]].to_list()).all()


def test_pct_gap_is_a_ratio_of_means_not_a_mean_of_ratios():
    found = summary(rows([(10, 0, 5), (1, 0, 1)])).iloc[0]
    assert found["pct_gap"] == pytest.approx(100 * 3 / 5.5)


def test_draws_are_averaged_within_an_example():
    found = summary(
        rows([(9, 0, 2), (9, 0, 4)], "random", draw=0),
        rows([(9, 0, 4), (9, 0, 8)], "random", draw=1),
    ).iloc[0]
    assert (found["n"], found["patched"]) == (2, 4.5)


def test_examples_without_a_value_are_dropped_and_counted():
    found = summary(rows([(9, 0, 2), (9, 0, np.nan), (9, 0, 4)]), planned=5).iloc[0]
    assert (found["n"], found["n_dropped"], found["patched"]) == (2, 3, 3.0)


def test_examples_read_at_the_donors_window_are_counted():
    frame = pd.DataFrame(
        rows([(9, 0, 2), (9, 0, 4), (9, 0, 6)], metric="confusion")
        + rows([(9, 0, 2), (9, 0, 4), (9, 0, 6)], "random", metric="confusion", draw=0)
        + rows([(9, 0, 2), (9, 0, 4), (9, 0, 6)], "random", metric="confusion", draw=1),
        columns=[*COLUMNS, "clean", "corrupted", "patched"],
    )
    frame["window"] = ["own", "own", "donor", "own", "donor", "own", "donor", "donor", "own"]
    found = summarise(frame, 3, resamples=10, seed=0).set_index("ranking")["n_donor_window"]
    assert found.to_dict() == {"top": 1, "random": 2}


def test_intervals_equal_a_slow_bootstrap():
    rng = np.random.default_rng(1)
    values = np.column_stack([rng.normal(8, 1, 9), rng.normal(0, 1, 9), rng.normal(5, 1, 9)])
    found = summary(rows(values)).iloc[0]
    draws = np.random.default_rng(0).integers(0, 9, size=(200, 9))
    differences, fractions = [], []
    for draw in draws:
        clean, corrupted, patched = values[draw].mean(0)
        differences.append(patched - corrupted)
        fractions.append(100 * (patched - corrupted) / (clean - corrupted))
    expected = np.percentile(differences, [2.5, 97.5])
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(tuple(expected))
    expected = np.percentile(fractions, [2.5, 97.5])
    assert (found["pct_gap_low"], found["pct_gap_high"]) == pytest.approx(tuple(expected))


@pytest.mark.parametrize(("direction", "expected"), [("denoise", 2.0), ("noise", -2.0)])
def test_top_is_compared_with_its_own_random_heads_on_shared_examples(direction, expected):
    found = summary(
        rows([(9, 0, 5), (9, 0, 7), (9, 0, 99)], "top_help", direction),
        rows([(9, 0, 3), (9, 0, 5)], "random_help", direction),
        rows([(9, 0, 8), (9, 0, 8)], "random", direction),
    ).set_index("ranking")
    top = found.loc["top_help"]
    assert top["top_minus_random"] == pytest.approx(expected)
    assert top["top_minus_random_low"] == pytest.approx(expected)
    assert np.isnan(found.loc["random", "top_minus_random"])


def effect(example, metric, clean, corrupted):
    return EventEffects(example, 0, metric, clean, corrupted, np.zeros((2, 2, 0), np.float32))


def test_margin_gaps_are_means_over_events():
    events = [effect("a", "margin", 2, 0), effect("a", "margin", 4, 1), effect("b", "margin", 1, 1)]
    gaps = margin_gaps(events, 1, "K1")
    assert gaps[["example", "clean", "corrupted"]].values.tolist() == [["a", 3, 0.5], ["b", 1, 1]]


def test_written_gaps_cover_the_corrupted_traces():
    gaps = written_gaps({"a": 0.5, "b": 0.6}, {"b": 0.1}, 2, "K2", "confusion")
    assert gaps.values.tolist() == [[2, "K2", "b", "confusion", 0.6, 0.1]]

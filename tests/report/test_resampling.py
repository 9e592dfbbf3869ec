import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mechdistill.report.resampling import Bootstrap


def test_mean_interval_agrees_with_scipy():
    values = pd.Series(np.random.default_rng(0).normal(1, 2, 60))
    ours = Bootstrap(4000, 1).mean(values, "")
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=2)
    assert ours.effect == pytest.approx(values.mean())
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.06)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.06)


def test_missing_values_are_left_out():
    values = pd.Series([1.0, np.nan, 3.0])
    assert Bootstrap(50, 0).mean(values, "").n == 2
    assert Bootstrap(50, 0).mean(values, "").effect == 2.0


def test_nothing_known_gives_no_interval():
    assert not Bootstrap(50, 0).mean(pd.Series([np.nan]), "").known()


def test_seed_spread_widens_the_interval():
    notes = np.random.default_rng(0).normal(0, 0.01, 50)
    equal_seeds = np.stack([notes, notes, notes])
    apart = equal_seeds + np.array([[-1.0], [0.0], [1.0]])
    boot = Bootstrap(500, 0)
    assert boot.grid(apart, "").high > boot.grid(equal_seeds, "").high + 0.2


def test_grid_resample_is_a_mean_over_drawn_rows_and_columns():
    """Slow loop over the same draws."""
    from mechdistill.significance.bootstrap import draw

    values = np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 6.0]])
    drawn = draw(3, 2, 40, 9)
    means = []
    for rows, columns in zip(drawn.seeds, drawn.documents, strict=True):
        total = weight = 0.0
        for s in range(2):
            for d in range(3):
                if not np.isnan(values[s, d]):
                    total += rows[s] * columns[d] * values[s, d]
                    weight += rows[s] * columns[d]
        means.append(total / weight if weight else np.nan)
    low, high = np.nanpercentile(means, [2.5, 97.5])
    found = Bootstrap(40, 9).grid(values, "")
    assert (found.low, found.high) == pytest.approx((low, high))


def test_same_seed_same_interval():
    values = pd.Series(np.arange(9.0))
    assert Bootstrap(100, 3).mean(values, "") == Bootstrap(100, 3).mean(values, "")

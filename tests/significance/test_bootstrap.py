import itertools

import numpy as np
import pytest
from scipy import stats

from mechdistill.evaluate.label_sets import label_counts, macro_f1
from mechdistill.significance.bootstrap import (
    Resamples,
    draw,
    mean_of,
    paired_difference,
    point_scores,
    summarise,
)

from ..evaluate.cases import agrees, cases


def case_named(name):
    (found,) = (p.values[0] for p in cases("bootstrap", "bootstrap_pitfall") if p.id == name)
    return found


def statistics(values):
    values = np.array(values, dtype=float)
    return values, np.ones(len(values))


def difference(case, resamples=1000, seed=0):
    new, base = statistics(case["inputs"]["new"]), statistics(case["inputs"]["base"])
    drawn = draw(len(new[0]), 1, resamples, seed)
    return paired_difference([new], [base], mean_of, drawn)


def test_fixed_index_matrix():
    case = case_named("boo_01_fixed_indices")
    found = difference(case)

    for value, key in ((found.mean, "mean"), (found.low, "lo"), (found.high, "hi")):
        assert agrees(value, case, key)
    assert agrees(found.point, case, "point")


def test_agrees_with_scipys_paired_percentile_interval():
    case = case_named("boo_02_scipy_paired")
    found = difference(case)

    assert agrees(found.low, case, "lo")
    assert agrees(found.high, case, "hi")
    assert agrees(found.standard_error, case, "se")


def test_pairing_makes_the_interval_narrow():
    case = case_named("boo_03_unpaired_pitfall")
    found = difference(case)
    unpaired = case["expected"]["hi"] - case["expected"]["lo"]

    assert found.high - found.low < unpaired / 2


def test_all_resamples_of_three_documents():
    case = case_named("boo_04_enumerated")
    drawn = list(itertools.product(range(3), repeat=3))
    counts = np.array([[list(row).count(i) for i in range(3)] for row in drawn], dtype=float)
    resamples = Resamples(counts, np.ones((27, 1)))
    new, base = statistics(case["inputs"]["d"]), statistics([0, 0, 0])
    found = paired_difference([new], [base], mean_of, resamples)

    for value, key in ((found.mean, "mean"), (found.low, "lo"), (found.high, "hi")):
        assert agrees(value, case, key)
    assert found.standard_error * np.sqrt(26 / 27) == pytest.approx(case["expected"]["sd"])


@pytest.mark.parametrize("name", ["boo_05_all_equal", "boo_06_constant_gain"])
def test_degenerate_differences(name):
    case = case_named(name)
    found = difference(case)

    for value, key in ((found.mean, "mean"), (found.low, "lo"), (found.high, "hi")):
        assert agrees(value, case, key)
    assert found.excludes_zero is case["expected"]["excludes_zero"]


@pytest.mark.parametrize("case", cases("bootstrap_macro_f1"))
def test_corpus_score_is_recomputed_on_each_resample(case):
    inputs = case["inputs"]
    labels = range(inputs["num_labels"])
    new, base = (label_counts(inputs["gold"], inputs[who], labels) for who in ("new", "base"))

    def macro(hit, false_alarm, missed):
        return macro_f1(hit, false_alarm, missed, np.ones(inputs["num_labels"], dtype=bool))

    resamples = draw(len(inputs["gold"]), 1, case["params"]["B"], case["params"]["seed"])
    found = paired_difference([new], [base], macro, resamples)

    for value, key in ((found.mean, "mean"), (found.low, "lo"), (found.high, "hi")):
        assert agrees(value, case, key)


def test_zero_on_the_edge_of_the_interval_is_not_a_difference():
    assert not summarise(np.linspace(0, 0.6, 1000), 0.3)._replace(low=0.0).excludes_zero


def test_seeds_are_averaged_within_a_resample():
    rng = np.random.default_rng(1)
    new, base = rng.normal(size=(3, 20)), rng.normal(size=(3, 20))
    resamples = draw(20, 3, 50, 0)
    found = paired_difference(
        [statistics(row) for row in new], [statistics(row) for row in base], mean_of, resamples
    )

    slow = []
    for documents, seeds in zip(resamples.documents, resamples.seeds, strict=True):
        total = 0.0
        for s in range(3):
            for d in range(20):
                total += seeds[s] * documents[d] * (new[s, d] - base[s, d])
        slow.append(total / (3 * 20))
    assert found.mean == pytest.approx(np.mean(slow))
    assert found.low == pytest.approx(np.percentile(slow, 2.5))
    assert found.point == pytest.approx((new - base).mean())


def test_seeds_that_disagree_widen_the_interval():
    agree = np.full((4, 30), 0.1)
    disagree = agree + np.array([-0.3, 0.3, -0.3, 0.3])[:, None]
    base = [statistics(np.zeros(30))] * 4
    resamples = draw(30, 4, 500, 0)

    narrow = paired_difference([statistics(row) for row in agree], base, mean_of, resamples)
    wide = paired_difference([statistics(row) for row in disagree], base, mean_of, resamples)
    assert wide.high - wide.low > 0.3
    assert narrow.high - narrow.low < 1e-9


def test_undefined_documents_leave_the_mean_of_the_others():
    value = np.array([1.0, 0.0, 3.0])
    defined = np.array([1.0, 0.0, 1.0])

    assert point_scores([(value, defined)], mean_of)[0] == 2.0


def test_error_rate_of_the_interval_is_about_five_percent():
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(200):
        new, base = rng.normal(size=(2, 60))
        resamples = draw(60, 1, 300, trial)
        found = paired_difference([statistics(new)], [statistics(base)], mean_of, resamples)
        hits += found.excludes_zero
    # a sound test at 5 % would err more often than 24 times of 200 in 1 of 20,000 runs
    assert hits <= 24
    assert stats.binom.sf(24, 200, 0.05) < 1e-3


def test_p_falls_below_alpha_where_the_interval_excludes_zero():
    values = np.random.default_rng(3).normal(0.5, 1, 1000)
    low_p = summarise(values - values.min() + 0.01, 1.0)
    no_effect = summarise(values - 0.5, 0.0)

    assert low_p.p == pytest.approx(2 / 1001)
    assert no_effect.p > 0.5

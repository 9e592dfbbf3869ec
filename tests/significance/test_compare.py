import numpy as np
import pandas as pd
import pytest

from mechdistill.significance.bootstrap import mean_of
from mechdistill.significance.compare import Measure, Pair, Settings, compare
from mechdistill.significance.plan import baselines, best_baseline, pairs

SETTINGS = Settings(bootstrap=400, alpha=0.05, seed=0)
PAIR = Pair("mech", "vanilla", "baseline")


def values(effect, seeds=3, documents=60, noise=0.1):
    """Per-document scores of two methods that differ by `effect`."""
    rng = np.random.default_rng(1)
    shared = rng.normal(size=documents)
    return {
        (method, seed): shared + shift + noise * rng.normal(size=documents)
        for method, shift in (("mech", effect), ("vanilla", 0.0))
        for seed in range(seeds)
    }


def row(measure, pair=PAIR):
    return compare([measure], [pair], "vanilla", SETTINGS).iloc[0]


@pytest.mark.parametrize(("effect", "mark"), [(0.3, "up"), (-0.3, "down"), (0.0, "")])
def test_mark_follows_the_sign_of_a_clear_difference(effect, mark):
    found = row(Measure("focus", values=values(effect)))

    assert found["mark"] == mark
    assert found["difference"] == pytest.approx(effect, abs=0.05)
    assert found["method_value"] - found["reference_value"] == pytest.approx(found["difference"])
    assert found["n_documents"] == 60
    assert found["n_seeds"] == 3


def test_a_mark_needs_both_tests():
    # four documents carry the whole gain: four flips of sign cannot reach p < 0.05
    base = np.zeros(40)
    new = np.where(np.arange(40) < 4, 1.0, 0.0)
    measure = Measure("focus", values={("mech", 0): new, ("vanilla", 0): base})
    found = row(measure)

    assert found["ci_low"] > 0
    assert found["p_wilcoxon"] == 0.125
    assert found["mark"] == ""


def test_detectable_difference_is_2_8_standard_errors():
    found = row(Measure("focus", values=values(0.0)))

    assert found["detectable"] == pytest.approx(2.8 * found["standard_error"])
    assert row(Measure("focus", values=values(1.5 * found["detectable"])))["mark"] == "up"


def test_undefined_documents_count_for_neither_method():
    scores = values(0.3)
    scores["mech", 0] = scores["mech", 0].copy()
    scores["mech", 0][:10] = np.nan
    for seed in range(3):
        scores["vanilla", seed] = scores["vanilla", seed].copy()
        scores["vanilla", seed][50:] = np.nan
    found = row(Measure("confusion", values=scores))

    kept = [
        scores["mech", s][i] - scores["vanilla", s][i]
        for s, first in ((0, 10), (1, 0), (2, 0))
        for i in range(first, 50)
    ]
    by_seed = [np.mean(kept[:40]), np.mean(kept[40:90]), np.mean(kept[90:])]
    assert found["difference"] == pytest.approx(np.mean(by_seed))
    assert found["n_documents"] == 50
    assert found["n_undefined"] == 3 * 10 + 10


def test_a_score_that_nobody_has_is_undefined_and_unmarked():
    nothing = {("mech", 0): np.full(5, np.nan), ("vanilla", 0): np.full(5, np.nan)}
    found = row(Measure("loop", values=nothing))

    assert np.isnan(found["difference"])
    assert np.isnan(found["p_wilcoxon"])
    assert np.isnan(found["p_holm"])
    assert found["mark"] == ""


def test_a_corpus_score_has_no_wilcoxon_test_and_is_marked_by_its_interval():
    hits = {
        ("mech", 0): (np.ones(50), np.ones(50)),
        ("vanilla", 0): (np.arange(50) % 2 * 1.0, np.ones(50)),
    }
    found = row(Measure("micro_f1", statistics=hits, reduce=mean_of))

    assert np.isnan(found["p_wilcoxon"])
    assert found["difference"] == 0.5
    assert found["mark"] == "up"
    assert found["p_holm"] == found["p_bootstrap"]


def test_the_teacher_of_one_seed_meets_every_seed_of_a_student():
    scores = {**values(0.0), ("teacher", 9): np.full(60, 2.0)}
    found = row(Measure("focus", values=scores), Pair("mech", "teacher", "teacher"))

    assert found["n_seeds"] == 3
    assert found["reference_value"] == 2.0


def test_a_seed_that_one_method_lacks_is_left_out_and_no_other_takes_its_place():
    scores = values(0.3)
    del scores["vanilla", 0], scores["vanilla", 2]
    found = row(Measure("loop", values=scores))

    alone = np.mean(scores["mech", 1] - scores["vanilla", 1])
    assert found["n_seeds"] == 1
    assert found["difference"] == pytest.approx(alone)


def test_holm_corrects_within_a_family_and_tables_are_a_family_of_their_own():
    measures = [Measure(name, values=values(0.02)) for name in ("focus", "confusion", "p_at_1")]
    frame = compare(measures, [PAIR], "vanilla", SETTINGS).set_index("metric")

    assert frame["family"].tolist() == ["baseline/table", "baseline/table", "baseline/other"]
    assert frame["family_size"].tolist() == [2, 2, 1]
    assert frame.loc["focus", "p_holm"] == pytest.approx(2 * frame.loc["focus", "p_wilcoxon"])
    assert frame.loc["p_at_1", "p_holm"] == frame.loc["p_at_1", "p_wilcoxon"]


def test_equal_input_gives_equal_tables():
    measures = [Measure("focus", values=values(0.1))]

    first, second = (compare(measures, [PAIR], "vanilla", SETTINGS) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


def test_plan_has_every_method_against_the_proposed_one():
    methods = ["vanilla", "vanilla_positions", "mech", "p1_only", "p2_only"]
    found = {(pair.method, pair.baseline): pair.role for pair in pairs(methods)}

    assert baselines(methods) == ["vanilla", "vanilla_positions"]
    assert found["mech", "vanilla"] == found["mech", "vanilla_positions"] == "baseline"
    assert found["mech", "p1_only"] == found["p2_only", "vanilla"] == "ablation"
    assert found["vanilla", "teacher"] == "teacher"
    assert ("vanilla_positions", "vanilla") not in found


def test_the_method_of_version_2_is_no_baseline_and_compared_with_both():
    methods = ["vanilla", "mech", "mistill"]
    found = {(pair.method, pair.baseline): pair.role for pair in pairs(methods)}

    assert baselines(methods) == ["vanilla"]
    assert ("mech", "mistill") not in found
    assert found["mistill", "vanilla"] == found["mistill", "mech"] == "successor"
    assert found["mistill", "teacher"] == "teacher"


def test_plan_of_a_study_without_the_proposed_method_has_the_teacher_only():
    assert {pair.role for pair in pairs(["vanilla", "vanilla_positions"])} == {"teacher"}


def test_best_baseline_is_the_best_on_validation_and_the_first_of_equals():
    assert best_baseline({"a": 0.4, "b": 0.6, "c": 0.9}, ["a", "b"]) == "b"
    assert best_baseline({"a": 0.5, "b": 0.5}, ["a", "b"]) == "a"
    assert best_baseline({}, []) == ""

"""Contrasts over students: against a loop over resamples, and against the comparison of two."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mechdistill.significance.bootstrap import draw
from mechdistill.significance.compare import Measure, Pair, Settings, compare
from mechdistill.significance.student_plan import Trained, joined_measures, student_contrasts
from mechdistill.significance.students import (
    GAIN,
    LARGER,
    cell,
    contrast_table,
    gain_over_mean,
    larger_less_smaller,
)

SETTINGS = Settings(bootstrap=200, alpha=0.05, seed=3)
STUDENTS = {"one": "small", "two": "large"}
METHODS = ("vanilla", "cwt", "mech")
NOTES, SEEDS = 12, (0, 1, 2)


@pytest.fixture
def measure() -> Measure:
    rng = np.random.default_rng(0)
    values = {
        (cell(member, method), seed): rng.normal(place, 1, NOTES)
        for place, member in enumerate(STUDENTS)
        for method in METHODS
        for seed in SEEDS
    }
    values[cell("two", "mech"), 1][4] = np.nan
    return Measure("focus", values=values)


def row(measure: Measure, contrast) -> dict:
    (found,) = contrast_table([measure], [contrast], SETTINGS).to_dict("records")
    return found


def test_a_contrast_of_one_student_is_the_comparison_of_its_methods(measure: Measure) -> None:
    found = row(measure, gain_over_mean({"two": "large"}, "mech", ["cwt"]))
    pair = Pair(cell("two", "mech"), cell("two", "cwt"), "baseline")
    expected = compare([measure], [pair], "", SETTINGS).iloc[0]
    for key in ("difference", "ci_low", "ci_high", "standard_error", "p_wilcoxon", "p_bootstrap"):
        assert found[key] == pytest.approx(expected[key]), key
    assert (found["n_documents"], found["n_undefined"], found["n_seeds"]) == (NOTES, 1, 3)
    assert found["mark"] == expected["mark"]


def test_a_gain_is_averaged_over_students_and_baselines_in_each_resample(measure: Measure) -> None:
    found = row(measure, gain_over_mean(STUDENTS, "mech", ["vanilla", "cwt"]))
    drawn = draw(NOTES, len(SEEDS), SETTINGS.bootstrap, SETTINGS.seed)
    lost = {(1, 4)}  # (seed, note): one undefined term takes it from all

    def mean(name: str, seed: int, times: np.ndarray) -> float:
        kept = [note for note in range(NOTES) if (seed, note) not in lost]
        own = measure.values[name, SEEDS[seed]]
        return sum(times[n] * own[n] for n in kept) / sum(times[n] for n in kept)

    def gain(seed: int, times: np.ndarray) -> float:
        gains = []
        for member in STUDENTS:
            base = [mean(cell(member, rival), seed, times) for rival in ("vanilla", "cwt")]
            gains.append(mean(cell(member, "mech"), seed, times) - sum(base) / 2)
        return sum(gains) / 2

    resampled = []
    for times, seeds in zip(drawn.documents, drawn.seeds):
        own = [gain(seed, times) for seed in range(len(SEEDS))]
        resampled.append(sum(s * g for s, g in zip(seeds, own)) / seeds.sum())
    ones = np.ones(NOTES)
    assert found["difference"] == pytest.approx(np.mean([gain(s, ones) for s in range(3)]))
    ends = np.percentile(resampled, [2.5, 97.5])
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(tuple(ends))
    assert found["baseline"] == "vanilla,cwt"


def test_the_last_student_is_compared_with_the_first(measure: Measure) -> None:
    found = row(measure, larger_less_smaller(STUDENTS, "vanilla"))
    large, small = (
        np.mean([measure.values[cell(m, "vanilla"), s] for s in SEEDS]) for m in ("two", "one")
    )
    assert found["difference"] == pytest.approx(large - small)
    assert (found["question"], found["students"]) == (LARGER, "large; small")


def test_seeds_that_a_term_lacks_count_for_none(measure: Measure) -> None:
    fewer = {key: v for key, v in measure.values.items() if key != (cell("one", "mech"), 2)}
    contrast = gain_over_mean(STUDENTS, "mech", ["vanilla"])
    assert row(Measure("focus", values=fewer), contrast)["n_seeds"] == 2
    none = {key: v for key, v in measure.values.items() if key[0] != cell("one", "mech")}
    assert contrast_table([Measure("focus", values=none)], [contrast], SETTINGS).empty


def test_a_score_of_the_whole_split_has_no_wilcoxon(measure: Measure) -> None:
    statistics = {key: (np.nan_to_num(v), np.ones(NOTES)) for key, v in measure.values.items()}
    whole = Measure("macro_f1_gold_present", statistics=statistics)
    found = row(whole, gain_over_mean(STUDENTS, "mech", ["vanilla"]))
    assert np.isnan(found["p_wilcoxon"])
    assert found["p_holm"] == found["p_bootstrap"]


def test_what_is_asked_of_a_data_set() -> None:
    small = Trained("llama 3 x 48", ("vanilla", "cwt", "mech", "p1_only"), 100)
    large = Trained("llama 3 x 64", ("vanilla", "cwt", "mech"), 180)
    asked = student_contrasts({"two": large, "one": small})
    gains = [(c.method, c.baseline) for c in asked if c.question == GAIN]
    assert gains == [("mech", "vanilla"), ("mech", "cwt"), ("mech", "vanilla,cwt")]
    larger = [c for c in asked if c.question == LARGER]
    assert {c.method for c in larger} == {"vanilla", "cwt", "mech"}  # what both train
    assert all(c.students == ("llama 3 x 64", "llama 3 x 48") for c in larger)
    assert all(c.weights == {cell("two", c.method): 1, cell("one", c.method): -1} for c in larger)


def test_students_of_equal_size_are_not_compared_by_size() -> None:
    members = {name: Trained(name, ("vanilla", "mech"), 100) for name in ("a", "b")}
    assert {c.question for c in student_contrasts(members)} == {GAIN}


def test_students_of_two_families_are_not_compared_by_size() -> None:
    members = {
        family: Trained(f"{family} 3 x 48", ("vanilla", "mech"), parameters)
        for family, parameters in (("llama", 100), ("qwen3", 110))
    }
    assert {c.question for c in student_contrasts(members)} == {GAIN}


def test_measures_of_members_keep_apart_and_leave_the_teacher_out() -> None:
    def scores(shift: float) -> pd.DataFrame:
        rows = [
            (method, 0, f"n{note}", "focus", shift + note)
            for method in ("teacher", "mech")
            for note in range(3)
        ]
        return pd.DataFrame(rows, columns=["method", "seed", "example", "metric", "value"])

    predictions = pd.DataFrame(
        [("mech", 0, f"n{note}", ["a"], ["a"]) for note in range(3)],
        columns=["method", "seed", "example", "gold", "predicted"],
    )
    members = {"one": scores(0), "two": scores(10)}
    both = dict.fromkeys(members, predictions)
    measures = joined_measures(members, both, ["a", "b"], [["a"], ["a"], ["b"]])
    by_name = {measure.name: measure for measure in measures}
    assert set(by_name) == {"focus", "micro_f1", "macro_f1_gold_present"}
    assert set(by_name["focus"].values) == {("one/mech", 0), ("two/mech", 0)}
    assert list(by_name["focus"].values["two/mech", 0]) == [10, 11, 12]

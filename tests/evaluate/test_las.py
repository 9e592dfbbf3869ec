import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from mechdistill.evaluate.label_sets import label_counts, samples_f1
from mechdistill.evaluate.las import leakage_split, leaks, split_mean, split_statistics

from .cases import agrees, cases

VIEWS = ("pred_input_and_rationale", "pred_input_only", "pred_rationale_only")
ANSWERS = st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=20)


def right(answer, predicted):
    return (np.array(answer) == np.array(predicted)).astype(float)


@pytest.mark.parametrize("case", cases("las"))
def test_worked_case(case):
    both, question, alone = (right(case["inputs"]["answer"], case["inputs"][v]) for v in VIEWS)
    found = leakage_split(both - question, leaks(alone))

    assert agrees((both - question).mean(), case, "simple")
    assert agrees(found.leaking, case, "leaking")
    assert agrees(found.others, case, "nonleaking")
    assert agrees(found.mean, case, "las_hase")
    assert found.n_leaking == case["expected"]["n_leaking"]


@pytest.mark.parametrize("case", cases("las_set_f1"))
def test_accuracy_of_a_set_of_labels_is_its_f1(case):
    inputs = case["inputs"]
    both, question = (
        samples_f1(label_counts(inputs["answer"], inputs[view], range(inputs["num_labels"])))
        for view in VIEWS[:2]
    )

    assert agrees(both.mean(), case, "with_rationale")
    assert agrees(question.mean(), case, "without")
    assert agrees((both - question).mean(), case, "simple")


@given(ANSWERS)
def test_agrees_with_accuracies_of_the_two_subsets(rows):
    answer, both, question, alone = np.array(rows).T
    leaking = answer == alone
    expected = [
        accuracy_score(answer[group], both[group]) - accuracy_score(answer[group], question[group])
        if group.any()
        else np.nan
        for group in (leaking, ~leaking)
    ]
    gain = right(answer, both) - right(answer, question)
    found = leakage_split(gain, leaks(right(answer, alone)))

    assert found[:2] == pytest.approx(tuple(expected), nan_ok=True)
    assert found.mean == pytest.approx(sum(expected) / 2, nan_ok=True)


def test_the_groups_weigh_the_same_however_large_they_are():
    gain, leaking = np.array([1.0, 0.0, 0.0, 0.0]), np.array([True, False, False, False])

    assert leakage_split(gain, leaking).mean == 0.5
    assert gain.mean() == 0.25


def test_resamples_are_scored_from_sums_as_documents_are():
    rng = np.random.default_rng(0)
    gain, leaking = rng.normal(size=12), rng.random(12) < 0.4
    drawn = rng.integers(0, 3, size=(5, 12)).astype(float)
    sums = (drawn @ part for part in split_statistics(gain, leaking))

    slow = []
    for row in drawn:
        picked = np.repeat(np.arange(12), row.astype(int))
        slow.append(leakage_split(gain[picked], leaking[picked]).mean)
    assert split_mean(*sums) == pytest.approx(slow, nan_ok=True)


def test_an_undefined_gain_counts_in_neither_group():
    gain, leaking = np.array([1.0, np.nan, 0.5]), np.array([True, True, False])

    assert leakage_split(gain, leaking).mean == 0.75

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from mechdistill.evaluate.label_sets import (
    caml_f1,
    exact_match,
    label_counts,
    label_groups,
    macro_f1,
    macro_f1_where_gold,
    micro_f1,
    per_label_f1,
    samples_f1,
)

from .cases import agrees, cases

SETS = st.lists(st.tuples(st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5))), min_size=1)


def totals(gold, predicted, labels):
    counts = label_counts(gold, predicted, labels)
    return counts, tuple(np.asarray(matrix.sum(0)) for matrix in counts)


@pytest.mark.parametrize("case", cases("f1"))
def test_worked_case(case):
    gold, predicted = case["inputs"]["gold"], case["inputs"]["pred"]
    labels = range(case["inputs"]["num_labels"])
    counts, total = totals(gold, predicted, labels)
    groups = label_groups(gold, labels, case["inputs"].get("train_labels", []))

    assert agrees(per_label_f1(*total), case, "per_label")
    assert agrees(micro_f1(*total), case, "micro")
    assert agrees(macro_f1(*total, among=groups["all"]), case, "macro_all")
    assert agrees(macro_f1(*total, among=groups["gold_present"]), case, "macro_gold_present")
    everywhere = macro_f1_where_gold(*total, among=groups["all"])
    assert agrees(everywhere, case, "macro_gold_present")
    assert agrees(caml_f1(*total), case, "macro_caml")
    assert agrees(samples_f1(counts).mean(), case, "samples_zd1")
    if "train_labels" in case["inputs"]:
        assert agrees(macro_f1(*total, among=groups["seen"]), case, "macro_seen_in_train")
        assert agrees(macro_f1(*total, among=groups["unseen"]), case, "macro_unseen_in_gold")


@pytest.mark.parametrize("case", cases("f1_torchmetrics"))
def test_agrees_with_what_torchmetrics_and_sklearn_return(case):
    _, total = totals(
        case["inputs"]["gold"], case["inputs"]["pred"], range(case["inputs"]["num_labels"])
    )
    everything = np.ones(case["inputs"]["num_labels"], dtype=bool)

    for library in ("torchmetrics", "sklearn"):
        assert agrees(macro_f1(*total, among=everything), case, library, "macro")
        assert agrees(micro_f1(*total), case, library, "micro")


@given(SETS)
def test_agrees_with_sklearn_on_any_sets(pairs):
    gold, predicted = [g for g, _ in pairs], [p for _, p in pairs]
    binarizer = MultiLabelBinarizer(classes=range(6))
    truth, guess = binarizer.fit_transform(gold), binarizer.fit_transform(predicted)
    counts, total = totals(gold, predicted, range(6))

    everything = np.ones(6, dtype=bool)
    expected = {
        average: f1_score(truth, guess, average=average, zero_division=0)
        for average in ("micro", "macro")
    }
    assert micro_f1(*total) == pytest.approx(expected["micro"])
    assert macro_f1(*total, among=everything) == pytest.approx(expected["macro"])
    samples = f1_score(truth, guess, average="samples", zero_division=1)
    assert samples_f1(counts).mean() == pytest.approx(samples)


@given(SETS)
def test_exact_match_is_set_equality(pairs):
    counts, _ = totals([g for g, _ in pairs], [p for _, p in pairs], range(6))

    assert exact_match(counts).tolist() == [float(g == p) for g, p in pairs]


def test_a_resample_without_a_label_leaves_it_out_of_the_mean():
    gold, predicted = [["a"], ["b"], ["b"]], [["a"], ["b"], []]
    labels = ["a", "b", "c"]
    present = label_groups(gold, labels, [])["gold_present"]
    counts, total = totals(gold, predicted, labels)
    drawn = np.array([[0.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    resampled = tuple(drawn @ matrix for matrix in counts)

    # the first resample has two documents of "b" with a hit and one missed: F1 = 4 / 5
    assert macro_f1_where_gold(*resampled, among=present).tolist() == pytest.approx([0.8, 5 / 6])
    assert macro_f1(*resampled, among=present).tolist() == pytest.approx([0.4, 5 / 6])
    assert macro_f1(*total, among=present) == macro_f1_where_gold(*total, among=present)


def test_macro_f1_of_no_label_is_undefined():
    nothing = np.zeros(2)

    assert np.isnan(macro_f1(nothing, nothing, nothing, among=np.zeros(2, dtype=bool)))
    assert np.isnan(macro_f1_where_gold(nothing, nothing, nothing, among=np.ones(2, dtype=bool)))


def test_a_label_outside_the_space_is_refused():
    with pytest.raises(KeyError):
        label_counts([["a"]], [["x"]], ["a", "b"])

import numpy as np
import pytest

from mechdistill.evaluate.predictions import normalise
from mechdistill.evaluate.ranking import (
    inverse_propensity,
    precision_at,
    psp_at,
    rank_by_score,
    weighted_hits,
)

from .cases import agrees, cases


def mean_precision(rankings, gold, k):
    """P@1..P@k of normalised rankings."""
    clean = [normalise(ranking, set(range(10))).labels for ranking in rankings]
    return [
        float(np.mean([precision_at(r, g, j) for r, g in zip(clean, gold, strict=True)]))
        for j in range(1, k + 1)
    ]


@pytest.mark.parametrize("case", cases("precision_at_k"))
def test_worked_case_of_precision(case):
    inputs, k = case["inputs"], case["params"]["k"]
    if "scores" in inputs:
        rankings = [rank_by_score(scores) for scores in inputs["scores"]]
        assert rankings == case["expected"]["ranking"]
        assert agrees(mean_precision(rankings, inputs["gold"], k), case, "p")
    else:
        assert agrees(mean_precision(inputs["ranking"], inputs["gold"], k), case)


@pytest.mark.parametrize("case", cases("precision_at_k_pitfall"))
def test_does_not_fall_into_a_known_pitfall(case):
    inputs, k = case["inputs"], case["params"]["k"]
    if "scores" in inputs:  # ties must not go to the highest label id
        rankings = [rank_by_score(scores) for scores in inputs["scores"]]
        assert rankings != case["expected"]["ranking"]
    else:  # a repeated hit must not count twice
        assert not agrees(mean_precision(inputs["ranking"], inputs["gold"], k), case)


@pytest.mark.parametrize("case", cases("inverse_propensity"))
def test_worked_case_of_inverse_propensity(case):
    counts = dict(enumerate(case["inputs"]["label_counts"]))
    documents = case["inputs"]["n_train"]
    constants = {"a": case["params"]["A"], "b": case["params"]["B"]}
    if documents < 3:  # the formula's values, which favour frequent labels, are refused
        with pytest.raises(ValueError, match="at least 3"):
            inverse_propensity(counts, documents, **constants)
        return
    assert agrees(list(inverse_propensity(counts, documents, **constants).values()), case)


@pytest.mark.parametrize("case", cases("psp_at_k"))
def test_worked_case_of_psp(case):
    inputs = case["inputs"]
    weights = dict(enumerate(inputs["inverse_propensity"]))
    ks = range(1, case["params"]["k"] + 1)

    normalised = [psp_at(inputs["ranking"], inputs["gold"], weights, k) for k in ks]
    raw = [
        np.mean(
            [
                weighted_hits(r, g, weights, k)[0]
                for r, g in zip(inputs["ranking"], inputs["gold"], strict=True)
            ]
        )
        for k in ks
    ]
    assert agrees(normalised, case, "normalised")
    assert agrees(raw, case, "raw")


def test_psp_without_any_gold_label_is_undefined():
    assert np.isnan(psp_at([["a"]], [[]], {"a": 2.0}, 1))

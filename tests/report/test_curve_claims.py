import numpy as np
import pytest

from mechdistill.report.claims import curves
from mechdistill.report.evidence import NotTested
from mechdistill.report.verdicts import Verdict


def rising(t):
    return 0.3 + 0.8 * np.minimum(t, 0.5)


def flat(t):
    return np.full_like(t, 0.4)


def falling_late(t):
    return 0.6 - 0.8 * np.maximum(t - 0.5, 0)


def test_focus_that_rises_holds(build):
    evidence = build.evidence(curves=build.curves({("teacher", "focus"): rising}))
    assert curves.focus_rises(evidence).decided is Verdict.HOLDS


def test_focus_that_falls_refutes(build):
    evidence = build.evidence(curves=build.curves({("teacher", "focus"): lambda t: 1 - rising(t)}))
    assert curves.focus_rises(evidence).decided is Verdict.DOES_NOT_HOLD


def test_flat_focus_shows_no_difference(build):
    evidence = build.evidence(curves=build.curves({("teacher", "focus"): flat}))
    assert curves.focus_rises(evidence).decided is Verdict.NO_DIFFERENCE


def test_teacher_needs_both_halves(build):
    shapes = {("teacher", "focus"): rising, ("teacher", "confusion"): falling_late}
    both = build.evidence(curves=build.curves(shapes))
    assert curves.teacher_builds_then_falls(both).decided is Verdict.HOLDS
    shapes["teacher", "confusion"] = lambda t: 1 - falling_late(t)
    rising_confusion = build.evidence(curves=build.curves(shapes))
    assert curves.teacher_builds_then_falls(rising_confusion).decided is Verdict.DOES_NOT_HOLD


def test_vanilla_is_weak_only_below_the_teacher(build):
    shapes = {
        ("teacher", "focus"): rising,
        ("teacher", "confusion"): falling_late,
        ("vanilla", "focus"): lambda t: rising(t) - 0.2,
        ("vanilla", "confusion"): flat,
    }
    assert (
        curves.vanilla_weak_and_confused(build.evidence(curves=build.curves(shapes))).decided
        is Verdict.HOLDS
    )
    shapes["vanilla", "focus"] = lambda t: rising(t) + 0.2
    assert (
        curves.vanilla_weak_and_confused(build.evidence(curves=build.curves(shapes))).decided
        is Verdict.DOES_NOT_HOLD
    )


def test_missing_confusion_curve_is_not_tested(build):
    evidence = build.evidence(curves=build.curves({("teacher", "focus"): rising}))
    with pytest.raises(NotTested, match="confusion"):
        curves.teacher_builds_then_falls(evidence)


def test_p1_only_claim_needs_focus_up_and_confusion_not_down(build):
    means = {
        ("vanilla", "focus"): 0.5,
        ("p1_only", "focus"): 0.6,
        ("vanilla", "confusion"): 0.3,
        ("p1_only", "confusion"): 0.3,
    }
    good = build.evidence(scores=build.scores(means))
    assert curves.p1_raises_focus_alone(good).decided is Verdict.HOLDS
    means["p1_only", "confusion"] = 0.1
    lowered = build.evidence(scores=build.scores(means))
    assert curves.p1_raises_focus_alone(lowered).decided is Verdict.DOES_NOT_HOLD


def test_p2_only_claim(build):
    means = {
        ("vanilla", "confusion"): 0.3,
        ("p2_only", "confusion"): 0.2,
        ("mech", "focus"): 0.6,
        ("p2_only", "focus"): 0.5,
    }
    assert (
        curves.p2_lowers_confusion(build.evidence(scores=build.scores(means))).decided
        is Verdict.HOLDS
    )
    means["p2_only", "focus"] = 0.7
    assert (
        curves.p2_lowers_confusion(build.evidence(scores=build.scores(means))).decided
        is Verdict.DOES_NOT_HOLD
    )


def test_closest_to_the_teacher(build):
    shapes = {
        (method, metric): (lambda t, away=away, base=base: base(t) - away)
        for method, away in {
            "teacher": 0.0,
            "mech": 0.05,
            "vanilla": 0.3,
            "p1_only": 0.2,
            "p2_only": 0.2,
        }.items()
        for metric, base in {"focus": rising, "confusion": falling_late}.items()
    }
    outcome = curves.mech_follows_teacher(build.evidence(curves=build.curves(shapes)))
    assert outcome.decided is Verdict.HOLDS
    assert outcome.parts[0].estimate.effect == pytest.approx(0.25, abs=0.02)
    shapes["mech", "focus"] = lambda t: rising(t) - 0.4
    worse = curves.mech_follows_teacher(build.evidence(curves=build.curves(shapes)))
    assert worse.decided is Verdict.DOES_NOT_HOLD

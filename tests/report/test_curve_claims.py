import numpy as np
import pandas as pd
import pytest

from mechdistill.report.claims import curves
from mechdistill.report.claims.scores import difference
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


def of_seeds(frame, method, seeds):
    """The frame with the seeds of one method renamed, the surplus left out."""
    mine = frame["method"] == method
    renamed = frame["seed"].where(~mine, frame["seed"].map(dict(enumerate(seeds))))
    return frame.assign(seed=renamed).dropna(subset="seed").astype({"seed": int})


def distances(seed_of_far, *, seeds):
    """Curves of mech, near the teacher, and of vanilla, far only with one seed."""
    t = np.linspace(0, 1, 11)
    away = {"teacher": {0: 0.0}, "mech": dict.fromkeys(seeds["mech"], 0.1)}
    away["vanilla"] = {s: 0.5 if s == seed_of_far else 0.1 for s in seeds["vanilla"]}
    rows = [
        (m, m, seed, note, "cumulative", metric, x, 0.3 + far + 0.01 * i)
        for m, by_seed in away.items()
        for seed, far in by_seed.items()
        for i, note in enumerate("abcdef")
        for metric in ("focus", "confusion")
        for x in t
    ]
    columns = ["model", "method", "seed", "example", "kind", "metric", "t", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_curves_are_paired_by_seed_number_and_not_by_place(build):
    """With the shared seed 1 both are equally far; seed 2 alone makes vanilla farther."""
    few = build.with_methods("vanilla", "mech")
    frame = distances(2, seeds={"mech": (0, 1), "vanilla": (1, 2)})
    outcome = curves.mech_follows_teacher(few.evidence(curves=frame))
    assert outcome.parts[0].estimate.effect == pytest.approx(0.0, abs=1e-12)
    assert outcome.decided is Verdict.NO_DIFFERENCE


def test_curves_of_unequal_numbers_of_seeds_are_compared_on_the_shared(build):
    few = build.with_methods("vanilla", "mech")
    frame = distances(2, seeds={"mech": (0, 2), "vanilla": (0, 1, 2)})
    outcome = curves.mech_follows_teacher(few.evidence(curves=frame))
    assert outcome.parts[0].estimate.effect == pytest.approx(0.2)


def test_curves_without_a_shared_seed_are_not_compared(build):
    few = build.with_methods("vanilla", "mech")
    frame = distances(2, seeds={"mech": (0, 1), "vanilla": (2, 3)})
    with pytest.raises(NotTested, match="seed"):
        curves.mech_follows_teacher(few.evidence(curves=frame))


def test_scores_are_paired_by_seed_number_and_not_by_place(build):
    scores = build.scores({("vanilla", "focus"): 0.5, ("p1_only", "focus"): 0.6}, seeds=3)
    shifted = of_seeds(scores, "p1_only", (1, 2, 3))
    by_seed = scores.pivot_table(index="example", columns=["method", "seed"], values="value")
    paired = [by_seed["p1_only", s - 1] - by_seed["vanilla", s] for s in (1, 2)]
    found = difference(build.evidence(scores=shifted), "focus", "p1_only", "vanilla")
    assert found.effect == pytest.approx(np.mean(paired))
    one_less = shifted[(shifted["method"] != "vanilla") | (shifted["seed"] > 0)]
    assert difference(build.evidence(scores=one_less), "focus", "p1_only", "vanilla") == found
    with pytest.raises(NotTested, match="seed"):
        apart = of_seeds(scores, "p1_only", (5, 6, 7))
        difference(build.evidence(scores=apart), "focus", "p1_only", "vanilla")

"""X3-X5: do metrics measure meaning, does the pool matter, are scores reliable."""

import pandas as pd
import pytest

from mechdistill.report.claims import checks
from mechdistill.report.evidence import NotTested
from mechdistill.report.verdicts import Verdict

METRICS = ("macro_f1_gold_present", "focus", "confusion")
"""The last is better when it is lower."""


def against_random_heads(build, mech, random):
    """Mech and the control, each with one value of every metric."""
    means = {("mech", metric): value for metric, value in zip(METRICS, mech)}
    means |= {("random_pool", metric): value for metric, value in zip(METRICS, random)}
    trained = build.with_methods("vanilla", "mech", "random_pool")
    return trained.evidence(scores=trained.scores(means))


@pytest.mark.parametrize(
    ("mech", "random", "verdict"),
    [
        ((0.7, 0.6, 0.2), (0.5, 0.5, 0.4), Verdict.HOLDS),
        ((0.7, 0.6, 0.4), (0.7, 0.6, 0.4), Verdict.NO_DIFFERENCE),
        ((0.7, 0.6, 0.4), (0.5, 0.5, 0.2), Verdict.DOES_NOT_HOLD),
    ],
)
def test_pool_matters_if_random_heads_gain_less_in_every_metric(build, mech, random, verdict):
    outcome = checks.pool_matters(against_random_heads(build, mech, random))
    assert outcome.decided is verdict
    assert [part.estimate.effect for part in outcome.parts] == pytest.approx(
        [a - b for a, b in zip(mech, random)], abs=0.02
    )


@pytest.mark.parametrize("methods", [("vanilla", "mech"), ("vanilla", "random_pool")])
def test_pool_is_not_tested_without_the_control_or_what_it_controls(build, methods):
    with pytest.raises(NotTested, match="method random_pool"):
        checks.pool_matters(build.with_methods(*methods).evidence())


@pytest.mark.parametrize(
    ("shuffled_confusion", "verdict"), [(0.6, Verdict.HOLDS), (0.2, Verdict.DOES_NOT_HOLD)]
)
def test_metrics_must_tell_a_trace_from_shuffled_ones(build, shuffled_confusion, verdict):
    means = {"focus": 0.6, "focus_shuffled": 0.3, "confusion": 0.4}
    means["confusion_shuffled"] = shuffled_confusion
    scores = build.scores({("teacher", metric): value for metric, value in means.items()})
    assert checks.metrics_measure_meaning(build.evidence(scores=scores)).decided is verdict


@pytest.mark.parametrize(("low", "verdict"), [(0.2, Verdict.HOLDS), (-0.1, Verdict.NO_DIFFERENCE)])
def test_scores_are_reliable_if_both_phases_halves_agree(build, low, verdict):
    rows = [
        (1, "coarse", "unembed", "out", 0.8, 0.6, 0.9, 60),
        (2, "refine", None, None, 0.4, low, 0.7, 60),
    ]
    columns = ["phase", "score", "anchor", "sinks", "spearman", "ci_low", "ci_high", "n"]
    frame = pd.DataFrame(rows, columns=columns)
    assert checks.scores_are_reliable(build.evidence(reliability=frame)).decided is verdict
    with pytest.raises(NotTested, match="RefineScore"):
        checks.scores_are_reliable(build.evidence(reliability=frame[:1]))

"""C01 and C33-C37: how Focus and Confusion move along the reasoning.

Trajectories are the model's own greedy traces, warped to put the first refinement position at
t = 0.5. The cumulative reading (the running mean of App. B) decides; see Figure 1 for both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.claims.scores import difference
from mechdistill.report.evidence import Evidence
from mechdistill.report.trajectories import (
    as_grid,
    early,
    late,
    rank_correlations,
    shared_examples,
    shared_seeds,
    slopes,
    trajectories,
)
from mechdistill.report.verdicts import Estimate, Part

KIND = "cumulative"


@claim("C01", "curves")
def focus_rises(evidence: Evidence) -> Outcome:
    curve = early(trajectories(evidence.table("curves"), "teacher", "focus", KIND))
    boot = evidence.design.bootstrap
    slope = boot.mean(slopes(curve), "cosine per whole trace")
    rank = boot.mean(rank_correlations(curve), "rank correlation")
    return Outcome(
        (Part("slope of Focus over t <= 0.5", slope, +1), Part("Spearman(t, Focus)", rank, +1))
    )


@claim("C33", "curves")
def teacher_builds_then_falls(evidence: Evidence) -> Outcome:
    curves, boot = evidence.table("curves"), evidence.design.bootstrap
    rise = slopes(early(trajectories(curves, "teacher", "focus", KIND)))
    fall = slopes(late(trajectories(curves, "teacher", "confusion", KIND)))
    return Outcome(
        (
            Part(
                "slope of the teacher's Focus before t*",
                boot.mean(rise, "cosine per whole trace"),
                +1,
            ),
            Part(
                "slope of the teacher's Confusion after t*",
                boot.mean(fall, "cosine per whole trace"),
                -1,
            ),
        )
    )


@claim("C34", "curves")
def vanilla_weak_and_confused(evidence: Evidence) -> Outcome:
    curves, boot = evidence.table("curves"), evidence.design.bootstrap

    def gap(metric: str, summary: Callable[[pd.DataFrame], pd.Series]) -> np.ndarray:
        ours = summary(trajectories(curves, "vanilla", metric, KIND))
        theirs = summary(trajectories(curves, "teacher", metric, KIND))
        examples = shared_examples(ours, theirs)
        grid: np.ndarray = as_grid(ours, examples) - as_grid(theirs, examples)
        return grid

    weak = boot.grid(gap("focus", lambda curve: early(curve).mean(axis=1)), "cosine")
    lasting = boot.grid(
        gap("confusion", lambda curve: slopes(late(curve))), "cosine per whole trace"
    )
    return Outcome(
        (
            Part("early Focus, vanilla minus teacher", weak, -1),
            Part("slope of late Confusion, vanilla minus teacher", lasting, +1),
        )
    )


@claim("C35", "scores")
def p1_raises_focus_alone(evidence: Evidence) -> Outcome:
    return Outcome(
        (
            Part(
                "Focus, p1_only minus vanilla",
                difference(evidence, "focus", "p1_only", "vanilla"),
                +1,
            ),
            Part(
                "Confusion, p1_only minus vanilla",
                difference(evidence, "confusion", "p1_only", "vanilla"),
                -1,
                absent=True,
            ),
        )
    )


@claim("C36", "scores")
def p2_lowers_confusion(evidence: Evidence) -> Outcome:
    return Outcome(
        (
            Part(
                "Confusion, p2_only minus vanilla",
                difference(evidence, "confusion", "p2_only", "vanilla"),
                -1,
            ),
            Part("Focus, p2_only minus mech", difference(evidence, "focus", "p2_only", "mech"), -1),
        )
    )


@claim("C37", "curves")
def mech_follows_teacher(evidence: Evidence) -> Outcome:
    others = [m for m in ("vanilla", "p1_only", "p2_only") if m in evidence.design.methods]
    return Outcome(
        tuple(
            Part(
                f"{metric}: distance to the teacher's curve, {other} minus mech",
                _farther(evidence, other, metric),
                +1,
            )
            for metric in ("focus", "confusion")
            for other in others
        )
    )


def _farther(evidence: Evidence, other: str, metric: str) -> Estimate:
    """Mean |student - teacher| over t, of `other` minus that of mech, paired by note and seed."""
    curves = evidence.table("curves")
    teacher = trajectories(curves, "teacher", metric, KIND).droplevel("seed")

    def distance(method: str) -> pd.Series:
        curve = trajectories(curves, method, metric, KIND)
        target = teacher.reindex(curve.index.get_level_values("example")).set_axis(curve.index)
        return (curve - target[curve.columns]).abs().mean(axis=1)

    mech, rest = distance("mech"), distance(other)
    examples = shared_examples(mech, rest)
    seeds = shared_seeds(*(values.index.get_level_values("seed") for values in (mech, rest)))
    gap: np.ndarray = as_grid(rest, examples, seeds) - as_grid(mech, examples, seeds)
    return evidence.design.bootstrap.grid(gap, "cosine (mean over t)")

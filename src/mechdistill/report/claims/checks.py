"""X1-X6: checks that the paper does not make and that its claims depend on."""

from __future__ import annotations

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.claims.scores import difference, score_grid, shared_notes
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.lists import over_random
from mechdistill.report.metrics import BY_KEY
from mechdistill.report.rankings import NAMES, PRIMARY
from mechdistill.report.verdicts import Estimate, Part


@claim("X1")
def phases_without_template(evidence: Evidence) -> Outcome:
    raise NotTested("the teacher is trained on reasoning of two templated phases")


@claim("X2")
def heads_are_specific(evidence: Evidence) -> Outcome:
    raise NotTested("scores at tokens that decide nothing were not taken")


@claim("X3", "scores")
def metrics_measure_meaning(evidence: Evidence) -> Outcome:
    return Outcome(
        (
            Part(
                "teacher's Focus minus the same with other notes' anchors",
                _within(evidence, "focus", "focus_shuffled"),
                +1,
            ),
            Part(
                "teacher's Confusion minus the same with a shuffled continuation",
                _within(evidence, "confusion", "confusion_shuffled"),
                -1,
            ),
        )
    )


def _within(evidence: Evidence, metric: str, control: str) -> Estimate:
    scores = evidence.table("scores")
    # the shuffled control is taken on the notes of the curves alone
    both = (set(shared_notes(scores, name, ("teacher",))) for name in (metric, control))
    notes = sorted(set.intersection(*both))
    values = [score_grid(scores, name, "teacher", notes) for name in (metric, control)]
    return evidence.design.bootstrap.grid(values[0] - values[1], "cosine")


@claim("X4", "scores", "comparisons")
def pool_matters(evidence: Evidence) -> Outcome:
    if "random_pool" not in evidence.design.methods or "mech" not in evidence.design.methods:
        raise NotTested("no student was trained towards random heads (method random_pool)")
    return Outcome(
        tuple(
            Part(
                f"{BY_KEY[metric].long}, mech minus random heads",
                difference(evidence, metric, "mech", "random_pool"),
                BY_KEY[metric].better,
            )
            for metric in ("macro_f1_gold_present", "focus", "confusion")
        ),
        "Random heads: as many in teacher and student as the pools hold, none of theirs.",
    )


@claim("X5", "reliability")
def scores_are_reliable(evidence: Evidence) -> Outcome:
    frame = evidence.table("reliability")
    parts = []
    for phase, (score, anchor, sinks) in PRIMARY.items():
        rows = frame[
            (frame["phase"] == phase)
            & (frame["score"] == score)
            & (frame["anchor"].fillna("") == anchor)
            & (frame["sinks"].fillna("") == sinks)
        ]
        if rows.empty:
            raise NotTested(f"the reliability of {NAMES[phase]} was not measured")
        row = rows.iloc[0]
        estimate = Estimate(
            float(row["spearman"]),
            float(row["ci_low"]),
            float(row["ci_high"]),
            int(row["n"]),
            "rank correlation",
        )
        parts.append(Part(f"split-half rank correlation of {NAMES[phase]}", estimate, +1))
    return Outcome(tuple(parts))


@claim("X6", "lists")
def effect_survives_candidates(evidence: Evidence) -> Outcome:
    if "lists" not in evidence.tables:
        raise NotTested("the number of candidates in the context is fixed")
    frame = evidence.table("lists")
    parts = [
        Part(
            f"phase {phase}, {number} candidates, outputs of the top heads {direction}, minus "
            "random heads",
            over_random(frame, number, phase, direction, evidence.design.pool_size),
            +1,
        )
        for phase in (1, 2)
        for number in dict.fromkeys(frame["number"])
        for direction in ("denoise", "noise")
    ]
    return Outcome(
        tuple(parts),
        "The same notes, teacher and heads with longer lists; a length at which no trace of the "
        "teacher can be patched leaves the claim open.",
    )

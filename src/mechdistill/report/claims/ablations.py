"""C38-C42: dropping phases and single loss terms, read on LAS (Figure 9)."""

from __future__ import annotations

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.claims.scores import difference, las_measured
from mechdistill.report.claims.students import NO_SIMULATOR
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.verdicts import Part
from mechdistill.significance.plan import ABLATIONS, PLAIN, PROPOSED

NO_TERM_DROPS = f"students without single loss terms were not trained, and {NO_SIMULATOR}"
P1_TERMS = tuple(method for method in ABLATIONS if method.startswith("mech_without_p1"))
P2_TERMS = tuple(method for method in ABLATIONS if method.startswith("mech_without_p2"))
PHASES = ("p1_only", "p2_only")


def _mech_is_above(evidence: Evidence, others: tuple[str, ...], unmeasured: str) -> Outcome:
    """LAS of mech less that of each of the others, all of which must have been trained."""
    if not las_measured(evidence):
        raise NotTested(unmeasured)
    missing = [other for other in others if other not in evidence.design.methods]
    if missing:
        raise NotTested(f"{', '.join(missing)} not trained")
    return Outcome(
        tuple(
            Part(f"LAS, mech minus {other}", difference(evidence, "las", PROPOSED, other), +1)
            for other in others
        )
    )


@claim("C38", "comparisons", "scores")
def phases_raise_las(evidence: Evidence) -> Outcome:
    return _mech_is_above(evidence, PHASES, f"{NO_SIMULATOR}; C17 compares the same students on F1")


@claim("C39", "comparisons", "scores")
def p1_terms_raise_las(evidence: Evidence) -> Outcome:
    return _mech_is_above(evidence, P1_TERMS, NO_TERM_DROPS)


@claim("C40", "comparisons", "scores")
def p2_terms_raise_las(evidence: Evidence) -> Outcome:
    return _mech_is_above(evidence, P2_TERMS, NO_TERM_DROPS)


@claim("C41", "comparisons", "scores")
def interactions_gain(evidence: Evidence) -> Outcome:
    others = tuple(method for method in ABLATIONS if method.endswith("_interaction"))
    return _mech_is_above(evidence, others, NO_TERM_DROPS)


@claim("C42", "comparisons", "scores")
def full_is_best(evidence: Evidence) -> Outcome:
    others = (*PHASES, *P1_TERMS, *P2_TERMS, PLAIN)
    return _mech_is_above(evidence, others, NO_TERM_DROPS)

"""C38-C42: dropping phases and single loss terms, read on LAS (Figure 9)."""

from __future__ import annotations

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.claims.students import NO_SIMULATOR
from mechdistill.report.evidence import Evidence, NotTested

NO_TERM_DROPS = f"students without single loss terms were not trained, and {NO_SIMULATOR}"


@claim("C38")
def phases_raise_las(evidence: Evidence) -> Outcome:
    raise NotTested(f"{NO_SIMULATOR}; C17 compares the same students on F1")


@claim("C39")
def p1_terms_raise_las(evidence: Evidence) -> Outcome:
    raise NotTested(NO_TERM_DROPS)


@claim("C40")
def p2_terms_raise_las(evidence: Evidence) -> Outcome:
    raise NotTested(NO_TERM_DROPS)


@claim("C41")
def interactions_gain(evidence: Evidence) -> Outcome:
    raise NotTested(NO_TERM_DROPS)


@claim("C42")
def full_is_best(evidence: Evidence) -> Outcome:
    raise NotTested(NO_TERM_DROPS)

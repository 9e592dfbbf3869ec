"""The paper's claims as tests on this study's tables, and a few checks beside them.

C01-C46 are of version 1, V01-V13 of version 2. One file a family. Importing the package registers
every claim.
"""

from mechdistill.report.claims import (
    ablations,
    causal,
    checks,
    curves,
    decisions,
    heads,
    recovery,
    scope,
    students,
)
from mechdistill.report.claims.registry import Claim, Outcome, claims, judge_all

__all__ = [
    "Claim",
    "Outcome",
    "ablations",
    "causal",
    "checks",
    "claims",
    "curves",
    "decisions",
    "heads",
    "judge_all",
    "recovery",
    "scope",
    "students",
]

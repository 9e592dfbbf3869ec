"""The paper's claims C01-C46 as tests on this study's tables, and a few checks beside them.

One file a family. Importing the package registers every claim.
"""

from mechdistill.report.claims import (
    ablations,
    causal,
    checks,
    curves,
    heads,
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
    "heads",
    "judge_all",
    "scope",
    "students",
]

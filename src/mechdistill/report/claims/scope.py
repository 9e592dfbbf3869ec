"""C45 and C46: what kind of task and model the claims are about."""

from __future__ import annotations

from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import count
from mechdistill.report.verdicts import Verdict


@claim("C45")
def teacher_is_zero_shot(evidence: Evidence) -> Outcome:
    raise NotTested("the study's teacher is trained on the task from scratch")


@claim("C46", "budgets")
def no_inference_cost(evidence: Evidence) -> Outcome:
    sizes = {
        method: int(budget["parameters"])
        for (method, _), budget in sorted(evidence.budgets.items())
        if "parameters" in budget
    }
    if "mech" not in sizes or "vanilla" not in sizes:
        raise NotTested("the sizes of the trained students were not recorded")
    equal = len(set(sizes.values())) == 1
    listed = ", ".join(f"{method} {size:,}" for method, size in sizes.items())
    return Outcome(
        (),
        (
            f"All {count(len(sizes), 'method')} give a model of the same architecture; parameters: "
            f"{listed}. The losses act in training only; times were not compared."
        ),
        Verdict.HOLDS if equal else Verdict.DOES_NOT_HOLD,
    )

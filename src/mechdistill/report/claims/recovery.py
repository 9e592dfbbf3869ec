"""V09-V13, of version 2: what training at decisions does to the student.

Recovery is read at departures in the reasoning, at the largest set of heads up to the size of a
pool, on heads found anew in each student.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from mechdistill.evaluate.causal_recovery import ALL_SEEDS, REFERENCE
from mechdistill.report.claims.registry import Outcome, claim
from mechdistill.report.claims.scores import difference
from mechdistill.report.evidence import Evidence, NotTested
from mechdistill.report.formats import plain, signed
from mechdistill.report.head_sets import largest_sets
from mechdistill.report.verdicts import Estimate, Part, Verdict
from mechdistill.significance.plan import SUCCESSOR

TASK = "macro_f1_gold_present"
MOST = 0.5
"""Recovery from which on a student already carries most of the teacher's effect."""
Row = Mapping[Hashable, Any]


@claim("V09")
def supervision_at_events(evidence: Evidence) -> Outcome:
    raise NotTested("it defines the method and states no effect")


@claim("V10", "recovery")
def recovery_across_families(evidence: Evidence) -> Outcome:
    """The ratio over chain-of-thought distillation is above 1; how near to 2 it is, is told."""
    teacher, student = evidence.design.families
    if teacher == student:
        raise NotTested(f"teacher and students are of one family, {teacher}")
    rows, where = _departures(evidence)
    row, reference = rows[SUCCESSOR, ALL_SEEDS], rows[REFERENCE, ALL_SEEDS]
    more = _estimate(row, "ratio", less=1.0)
    return Outcome(
        (Part(f"recovery of {SUCCESSOR} over {REFERENCE}, less 1, {where}", more, +1),),
        f"Ratio {plain(row['ratio'])}: of the teacher's effect, {REFERENCE} students recover "
        f"{plain(reference['recovery'])}, {SUCCESSOR} students {plain(row['recovery'])}. Students "
        f"are of the family {student}, the teacher of {teacher}.",
    )


@claim("V11", "recovery")
def recovery_within_the_family(evidence: Evidence) -> Outcome:
    """A gain that no seed contradicts, where the reference recovers more than half already."""
    teacher, student = evidence.design.families
    if teacher != student:
        raise NotTested(f"students are of the family {student}, the teacher of {teacher}")
    rows, where = _departures(evidence)
    gain = _estimate(rows[SUCCESSOR, ALL_SEEDS], "gain")
    premise = _estimate(rows[REFERENCE, ALL_SEEDS], "recovery", "ci", less=MOST)
    parts = (
        Part(f"gain in recovery of {SUCCESSOR} over {REFERENCE}, {where}", gain, +1),
        Part(f"recovery of {REFERENCE}, less {plain(MOST)}, {where}", premise, +1),
    )
    gains = {
        seed: float(own["gain"])
        for (method, seed), own in rows.items()
        if method == SUCCESSOR and seed != ALL_SEEDS
    }
    told = ", ".join(f"{signed(own)} (seed {seed})" for seed, own in gains.items())
    note = f"Gains by seed: {told}. Whether the gain is small is not judged."
    if not all(map(math.isfinite, gains.values())):
        return Outcome(parts, note, Verdict.UNDECIDED)
    contradicted = any(own <= 0 for own in gains.values())
    return Outcome(parts, note, Verdict.DOES_NOT_HOLD if contradicted else None)


@claim("V12", "scores", "comparisons")
def no_task_difference_in_bfloat16(evidence: Evidence) -> Outcome:
    found = _task_difference(evidence, "bfloat16")
    name = f"macro-F1, {SUCCESSOR} minus {REFERENCE}"
    return Outcome(
        (
            Part(f"{name}, gain", found, +1, absent=True),
            Part(f"{name}, loss", found, -1, absent=True),
        )
    )


@claim("V13", "scores", "comparisons")
def task_cost_in_float32(evidence: Evidence) -> Outcome:
    found = _task_difference(evidence, "float32")
    return Outcome((Part(f"macro-F1, {SUCCESSOR} minus {REFERENCE}", found, -1),))


def _task_difference(evidence: Evidence, weights: str) -> Estimate:
    methods = (SUCCESSOR, REFERENCE)
    _require(evidence)
    budgets = [budget for (name, _), budget in evidence.budgets.items() if name in methods]
    trained = sorted({str(budget.get("weights", "unrecorded")) for budget in budgets})
    if trained != [weights]:
        raise NotTested(
            f"the weights of students were {' and '.join(trained) or 'unrecorded'}, not {weights}"
        )
    return difference(evidence, TASK, *methods)


def _departures(evidence: Evidence) -> tuple[dict[tuple[str, int], Row], str]:
    """Rows of both methods, by method and seed, and where they were read."""
    _require(evidence)
    rows = evidence.table("recovery")
    rows = rows[(rows["kind"] == "departure") & (rows["segment"] == "reasoning")]
    rows = largest_sets(rows, evidence.design.pool_size)
    if rows.empty:
        raise NotTested("no set of heads of the size of a pool was ablated at departures")
    where = f"departures in the reasoning, {rows['bin'].iloc[0]} heads"
    return {(row["method"], row["seed"]): row for row in rows.to_dict("records")}, where


def _require(evidence: Evidence) -> None:
    for name in (SUCCESSOR, REFERENCE):
        if name not in evidence.design.methods:
            raise NotTested(f"the study trains no students by {name}")


def _estimate(row: Row, name: str, ends: str = "", less: float = 0.0) -> Estimate:
    columns = (name, f"{ends or name}_low", f"{ends or name}_high")
    effect, low, high = (float(row[column]) - less for column in columns)
    return Estimate(effect, low, high, int(row["n"]), name)

"""Claims on causal recovery and on the task, on tables with a planted truth."""

from dataclasses import replace

import pandas as pd
import pytest

from mechdistill.report.claims import recovery as claims
from mechdistill.report.evidence import NotTested
from mechdistill.report.verdicts import Verdict

SEEDS = (0, 1, 2)


def row(method, seed, size, *, recovery=0.3, gain=None, ratio=None, kind="departure"):
    own = {"method": method, "seed": seed, "kind": kind, "segment": "reasoning", "bin": size}
    own |= {"n": 40, "effect": 1.0, "teacher_effect": 2.0}
    for name, ends, value in (
        ("recovery", "ci", recovery),
        ("gain", "gain", gain),
        ("ratio", "ratio", ratio),
    ):
        value = float("nan") if value is None else value
        own |= {name: value, f"{ends}_low": value - 0.1, f"{ends}_high": value + 0.1}
    return own


def table(*, before=0.7, gain=0.2, ratio=1.8, gains=None):
    """Sets of 2, 4 (the size of a pool) and 8 heads; only those of 4 may count."""
    rows = []
    for size, factor in ((2, -1), (4, 1), (8, -1)):
        for seed in (*SEEDS, -1):
            own = gain if gains is None or seed == -1 else gains[seed]
            rows.append(row("vanilla", seed, size, recovery=before))
            rows.append(
                row(
                    "mistill",
                    seed,
                    size,
                    recovery=before + own,
                    gain=factor * own,
                    ratio=ratio * factor,
                )
            )
    rows.append(row("mistill", -1, 4, gain=-5.0, ratio=-5.0, kind="region"))
    return pd.DataFrame(rows)


@pytest.fixture
def students(build):
    """Evidence of students of another family or of the teacher's."""

    def made(families, recovery=None, methods=("vanilla", "mistill"), weights="float32", **tables):
        tables |= {} if recovery is None else {"recovery": recovery}
        evidence = build.with_methods(*methods).evidence(**tables)
        budgets = {(m, s): {"weights": weights} for m in methods for s in SEEDS}
        design = replace(evidence.design, families=families)
        return replace(evidence, design=design, budgets=budgets)

    return made


SAME, OTHER = ("llama", "llama"), ("llama", "qwen3")


class TestAnotherFamily:
    @pytest.mark.parametrize(
        ("ratio", "verdict"),
        [
            (1.8, Verdict.HOLDS),
            (0.7, Verdict.DOES_NOT_HOLD),
            (1.05, Verdict.NO_DIFFERENCE),
            (None, Verdict.UNDECIDED),
        ],
    )
    def test_the_ratio_decides(self, students, ratio, verdict):
        found = table() if ratio is None else table(ratio=ratio)
        if ratio is None:
            found[["ratio", "ratio_low", "ratio_high"]] = float("nan")
        outcome = claims.recovery_across_families(students(OTHER, found))
        assert outcome.decided is verdict
        assert "4 heads" in outcome.parts[0].name

    def test_not_tested_on_students_of_the_teachers_family(self, students):
        with pytest.raises(NotTested, match="one family, llama"):
            claims.recovery_across_families(students(SAME, table()))


class TestTheSameFamily:
    @pytest.mark.parametrize(
        ("truth", "verdict"),
        [
            ({}, Verdict.HOLDS),
            ({"gain": -0.2}, Verdict.DOES_NOT_HOLD),
            ({"gains": (0.2, 0.5, -0.01)}, Verdict.DOES_NOT_HOLD),
            ({"gain": 0.05}, Verdict.NO_DIFFERENCE),
            ({"before": 0.2}, Verdict.DOES_NOT_HOLD),
            ({"gains": (0.2, 0.5, float("nan"))}, Verdict.UNDECIDED),
        ],
    )
    def test_gain_seeds_and_premise_decide(self, students, truth, verdict):
        outcome = claims.recovery_within_the_family(students(SAME, table(**truth)))
        assert outcome.decided is verdict

    def test_not_tested_elsewhere(self, students):
        with pytest.raises(NotTested, match="of the family qwen3"):
            claims.recovery_within_the_family(students(OTHER, table()))
        with pytest.raises(NotTested, match="by mistill"):
            claims.recovery_within_the_family(students(SAME, table(), ("vanilla", "mech")))
        with pytest.raises(NotTested, match="causal recovery"):
            claims.recovery_within_the_family(students(SAME))
        with pytest.raises(NotTested, match="size of a pool"):
            large = table().query("bin == 8")
            claims.recovery_within_the_family(students(SAME, large))


class TestTask:
    def scored(self, build, students, mistill, weights):
        means = {("vanilla", claims.TASK): 0.5, ("mistill", claims.TASK): mistill}
        return students(SAME, weights=weights, scores=build.scores(means))

    @pytest.mark.parametrize(
        ("mistill", "in_bfloat16", "in_float32"),
        [
            (0.4, Verdict.DOES_NOT_HOLD, Verdict.HOLDS),
            (0.6, Verdict.DOES_NOT_HOLD, Verdict.DOES_NOT_HOLD),
            (0.5, Verdict.HOLDS, Verdict.NO_DIFFERENCE),
        ],
    )
    def test_the_difference_decides(self, build, students, mistill, in_bfloat16, in_float32):
        one = self.scored(build, students, mistill, "bfloat16")
        assert claims.no_task_difference_in_bfloat16(one).decided is in_bfloat16
        other = self.scored(build, students, mistill, "float32")
        assert claims.task_cost_in_float32(other).decided is in_float32

    def test_not_tested_in_the_other_precision(self, build, students):
        with pytest.raises(NotTested, match="were float32, not bfloat16"):
            claims.no_task_difference_in_bfloat16(self.scored(build, students, 0.5, "float32"))
        with pytest.raises(NotTested, match="were bfloat16, not float32"):
            claims.task_cost_in_float32(self.scored(build, students, 0.5, "bfloat16"))

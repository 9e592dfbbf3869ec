"""Recovery of the teacher's causal effect by students' own heads."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mechdistill.evaluate.causal_recovery import ALL_SEEDS, COLUMNS, causal_recovery
from mechdistill.report.resampling import Bootstrap

BOOT = Bootstrap(200, 0)
NOTES = [f"n{i}" for i in range(20)]


def sets(effects: dict[str, float], kind: str = "departure", whole: float = 4.0) -> pd.DataFrame:
    """As of `ablate_sets`: the top two heads take that many logits away, and other rows beside."""
    rows = [
        (kind, "answer", mode, ranking, size, 0, note, 1, 5.0, 5.0 - whole, 5.0 - effect * share)
        for note, effect in effects.items()
        for mode, ranking, size, share in (
            *(("ablated", "top", 1, 0.5), ("ablated", "top", 2, 1.0)),
            *(("ablated", "random", 2, 0.1), ("kept", "top", 2, 9.0)),
        )
    ]
    names = ["kind", "segment", "mode", "ranking", "bin", "draw", "example", "decisions"]
    return pd.DataFrame(rows, columns=[*names, "margin", "floor", "patched"])


def effects(seed: int, mean: float = 2.0) -> dict[str, float]:
    drawn = np.random.default_rng(seed).normal(mean, 0.3, len(NOTES))
    return dict(zip(NOTES, drawn.tolist(), strict=True))


def row(table: pd.DataFrame, method: str, seed: int, size: int = 2) -> pd.Series:
    (found,) = (
        own
        for _, own in table.query("method == @method and seed == @seed").iterrows()
        if own["bin"] == size
    )
    return found


def test_a_student_that_is_the_teacher_recovers_all() -> None:
    teacher = sets(effects(0))
    table = causal_recovery(teacher, {("vanilla", 0): teacher, ("vanilla", 1): teacher}, BOOT)
    assert tuple(table) == COLUMNS
    assert sorted(set(table["bin"])) == [1, 2]
    shares = table[["recovery", "ci_low", "ci_high", "share_recovery", "share_low", "share_high"]]
    assert np.allclose(shares, 1.0, rtol=0, atol=1e-12)
    assert (table["over"] == "").all() and table["gain"].isna().all()


def test_recovery_is_the_ratio_of_mean_effects_over_notes_and_seeds() -> None:
    teacher, students = effects(0), {0: effects(1, 1.0), 1: effects(2, 1.5)}
    students[1].pop("n3")
    given = {("mech", seed): sets(own, whole=2.0) for seed, own in students.items()}
    table = causal_recovery(sets(teacher), given, BOOT)
    every = [value for own in students.values() for value in own.values()]
    whole = row(table, "mech", ALL_SEEDS)
    assert whole["recovery"] == pytest.approx(np.mean(every) / np.mean([*teacher.values()]))
    assert whole["share_recovery"] == pytest.approx(2 * whole["recovery"])
    assert whole["ci_low"] < whole["recovery"] < whole["ci_high"]
    assert (whole["n"], whole["n_teacher"]) == (39, 20)
    one = row(table, "mech", 1, size=1)
    assert one["effect"] == pytest.approx(np.mean([*students[1].values()]) / 2)


def test_methods_are_compared_on_the_same_notes() -> None:
    teacher = effects(0)
    half = {note: value / 2 for note, value in teacher.items()}
    given = {
        (method, seed): sets(own)
        for method, own in (("vanilla", half), ("mistill", teacher))
        for seed in (0, 1)
    }
    table = causal_recovery(sets(teacher), given, BOOT)
    found = row(table, "mistill", ALL_SEEDS)
    assert found["over"] == "vanilla"
    assert found[["ratio", "ratio_low", "ratio_high"]].tolist() == pytest.approx([2, 2, 2])
    assert found[["gain", "gain_low", "gain_high"]].tolist() == pytest.approx([0.5, 0.5, 0.5])


def test_nothing_is_divided_by_an_effect_that_may_be_none() -> None:
    teacher = sets(dict(zip(NOTES, [1.0, -1.0] * 10, strict=True)))
    table = causal_recovery(teacher, {("vanilla", 0): sets(effects(0))}, BOOT)
    assert table["recovery"].isna().all() and table["effect"].notna().all()


def test_students_without_such_a_decision_have_no_recovery() -> None:
    teacher = sets(effects(0))
    other = sets(effects(0), kind="region")
    table = causal_recovery(teacher, {("vanilla", 0): other, ("mech", 0): teacher}, BOOT)
    without = row(table, "vanilla", 0)
    assert without["n"] == 0 and np.isnan(without["recovery"])
    found = row(table, "mech", ALL_SEEDS)
    assert found["recovery"] == 1.0 and np.isnan(found["ratio"]) and np.isnan(found["gain"])
    assert causal_recovery(teacher[:0], {("mech", 0): teacher}, BOOT).empty

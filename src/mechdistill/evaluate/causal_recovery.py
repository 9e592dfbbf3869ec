"""How much of the teacher's causal effect on a decision a student's own heads have.

The heads of a trained student are found anew, on its own traces and with the teacher's code
(`mechdistill.patching`): ranked by their effect beyond null on one half of the notes, ablated
together on the other. *Causal recovery* is what the student's margin loses by that, over what the
teacher's loses by its own set of as many heads (ours: the abstract of version 2 says no more than
"causal recovery ... read on heads found after training").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from mechdistill.heads.resampling import Floats
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.verdicts import Estimate

REFERENCE = "vanilla"
"""Chain-of-thought distillation, which the others are compared with."""
ALL_SEEDS = -1
"""In the column seed: all of them together."""
CELL = ["kind", "segment", "bin"]
COLUMNS = (
    *("method", "seed", *CELL, "n", "n_teacher", "effect", "teacher_effect"),
    *("recovery", "ci_low", "ci_high", "share_recovery", "share_low", "share_high"),
    *("over", "gain", "gain_low", "gain_high", "ratio", "ratio_low", "ratio_high"),
)
UNKNOWN = Estimate(float("nan"), float("nan"), float("nan"), 0, "")

Student = tuple[str, int]
"""Method and seed."""


def causal_recovery(
    teacher: pd.DataFrame, students: Mapping[Student, pd.DataFrame], boot: Bootstrap
) -> pd.DataFrame:
    """Recovery of every method and seed, by kind of decision and number of heads.

    Args:
        teacher: of `mechdistill.patching.head_sets.ablate_sets`.
        students: the same of each student, on its own traces and events.
        boot: notes are resampled, the same ones for teacher and students, and seeds with them
            where a method has several.

    Returns:
        method, seed (`ALL_SEEDS`: all together), kind, segment, bin (heads in the set), n (notes
        of which a student has such a decision; summed over seeds), n_teacher, effect (logits that
        the margin loses with the set ablated, mean over notes and seeds), teacher_effect, recovery
        (their ratio) with ci_low and ci_high; share_recovery (the same of effects as shares of what
        all heads do) with share_low and share_high; over (the method compared with, `REFERENCE`;
        empty for itself and without it), gain (recovery less that of `over`) and ratio (over it),
        with ends. Missing where an effect that is divided by has no interval above 0.
    """
    sides = {student: _sides(sets) for student, sets in students.items()}
    own = _sides(teacher)
    methods = list(dict.fromkeys(method for method, _ in students))
    records = []
    for cell, given in own.items():
        cells = {student: side.get(cell) for student, side in sides.items()}
        notes = sorted(
            {*given.index, *chain.from_iterable(c.index for c in cells.values() if c is not None)}
        )
        teachers = _Grid.of([given], notes)
        for method in methods:
            seeds = [seed for name, seed in students if name == method]
            for chosen in [[seed] for seed in seeds] + [seeds]:
                grid = _Grid.of([cells[method, seed] for seed in chosen], notes)
                other = None
                if method != REFERENCE and all((REFERENCE, seed) in cells for seed in chosen):
                    other = _Grid.of([cells[REFERENCE, seed] for seed in chosen], notes)
                records.append(
                    {
                        "method": method,
                        "seed": ALL_SEEDS if chosen is seeds else chosen[0],
                        **dict(zip(CELL, cell, strict=True)),
                        **_numbers(teachers, grid, other, boot),
                    }
                )
    return pd.DataFrame.from_records(records, columns=list(COLUMNS))


class _Grid:
    """What the sets do and what all heads do, [seeds, notes], NaN where there is no decision."""

    def __init__(self, done: Floats, whole: Floats) -> None:
        self.done, self.whole = done, whole

    @classmethod
    def of(cls, sides: Sequence[pd.DataFrame | None], notes: Sequence[str]) -> _Grid:
        frames = [
            pd.DataFrame(columns=["done", "whole"], dtype=float) if side is None else side
            for side in sides
        ]
        done, whole = (
            np.stack([frame[name].reindex(list(notes)).to_numpy(float) for frame in frames])
            for name in ("done", "whole")
        )
        return cls(done, whole)

    @property
    def n(self) -> int:
        """Notes with such a decision, summed over seeds."""
        return int(np.isfinite(self.done).sum())


def _sides(sets: pd.DataFrame) -> dict[tuple[str, str, int], pd.DataFrame]:
    """Effects of the top heads together and of all heads, by cell and note."""
    rows = sets[(sets["mode"] == "ablated") & (sets["ranking"] == "top")]
    rows = rows.assign(done=rows["margin"] - rows["patched"], whole=rows["margin"] - rows["floor"])
    return {
        (str(kind), str(segment), int(str(size))): own.set_index("example")[["done", "whole"]]
        for (kind, segment, size), own in rows.groupby(CELL, sort=False)
    }


def _numbers(
    teacher: _Grid, student: _Grid, other: _Grid | None, boot: Bootstrap
) -> dict[str, object]:
    effect, of_teacher = boot.grid(student.done, ""), boot.grid(teacher.done, "")
    known = of_teacher.low > 0
    recovery = boot.grids([student.done, teacher.done], _ratio, "") if known else UNKNOWN
    whole = boot.grid(student.whole, ""), boot.grid(teacher.whole, "")
    sides = [student.done, student.whole, teacher.done, teacher.whole]
    shares = known and all(one.low > 0 for one in whole)
    share = boot.grids(sides, _share_ratio, "") if shares else UNKNOWN
    gain = ratio = UNKNOWN
    if other is not None:
        if known:
            gain = boot.grids([student.done, other.done, teacher.done], _gain, "")
        if boot.grid(other.done, "").low > 0:
            ratio = boot.grids([student.done, other.done], _ratio, "")
    return {
        **{"n": student.n, "n_teacher": teacher.n},
        **{"effect": effect.effect, "teacher_effect": of_teacher.effect},
        **_with_ends("recovery", "ci", recovery),
        **_with_ends("share_recovery", "share", share),
        "over": "" if other is None else REFERENCE,
        **_with_ends("gain", "gain", gain),
        **_with_ends("ratio", "ratio", ratio),
    }


def _with_ends(name: str, ends: str, found: Estimate) -> dict[str, float]:
    return {name: found.effect, f"{ends}_low": found.low, f"{ends}_high": found.high}


def _over(above: Floats, below: Floats) -> Floats:
    """Quotients, missing where the divisor is not positive."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def _ratio(means: list[Floats]) -> Floats:
    return _over(means[0], means[1])


def _share_ratio(means: list[Floats]) -> Floats:
    done, whole, of_teacher, whole_of_teacher = means
    return _over(_over(done, whole), _over(of_teacher, whole_of_teacher))


def _gain(means: list[Floats]) -> Floats:
    return _over(means[0] - means[1], means[2])

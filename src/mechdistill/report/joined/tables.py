"""The paper's Tables 1 to 4 with this study's values, and a fifth of ablations and controls.

Rows stand in the paper's order: the methods of each student, then the gain averaged over students,
then the teacher. Marks compare mech with the best baseline of the same data set and student, chosen
on its validation notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechdistill.artifacts import how_to_make, read_text
from mechdistill.errors import InputError
from mechdistill.report.formats import interval, signed
from mechdistill.report.joined.places import Place, data_sets
from mechdistill.report.links import row_anchor
from mechdistill.report.metrics import BY_KEY, TABLE1, Metric, method_name
from mechdistill.report.tables import (
    COLUMNS,
    Cell,
    Line,
    Table,
    from_csv,
    mark_reference,
    shown_mark,
    value_cells,
)
from mechdistill.significance.plan import ABLATIONS, PAPER_BASELINES, PLAIN, PROPOSED, TEACHER
from mechdistill.significance.students import GAIN

PLACE = ("data_set", "student", "member")
ALL_STUDENTS = "all students"
CONTROLS = ("vanilla_positions", "vanilla_margin")


@dataclass(frozen=True)
class Plan:
    """What a table holds.

    Attributes:
        data_sets: places of the data sets in the study's order, in the table's order of rows.
        ends: whether average gains and the teacher stand there.
    """

    number: int
    title: str
    data_sets: tuple[int, ...]
    methods: tuple[str, ...]
    metrics: tuple[Metric, ...]
    ends: bool = True


PAIR = (PLAIN, PROPOSED)
PLANS = (
    Plan(1, "First data set, all methods", (0,), (*PAPER_BASELINES, PROPOSED), TABLE1),
    Plan(2, "Second data set, all methods", (1,), (*PAPER_BASELINES, PROPOSED), TABLE1),
    Plan(3, "Reasoning and downstream performance", (1, 0), PAIR, TABLE1[:4]),
    Plan(4, "Mechanism", (1, 0), PAIR, TABLE1[4:]),
    Plan(
        *(5, "Ablations and controls (no table of the paper)", (0, 1)),
        methods=(PROPOSED, *CONTROLS, *ABLATIONS),
        metrics=TABLE1,
        ends=False,
    ),
)

_AS_GAIN = {"difference": "gain", "ci_low": "gain_low", "ci_high": "gain_high"}

Measures = Mapping[Place, pd.DataFrame]
"""Tidy table of every measure of each member (`mechdistill.report.tables.tidy`)."""


def read_measures(paths: Mapping[Place, str], methods: Mapping[str, Sequence[str]]) -> Measures:
    """The members' measures.csv.

    Args:
        methods: that each member trains, by its name.

    Raises:
        InputError: a file is missing, or is of a run that trained other methods.
    """
    found = {place: from_csv(read_text(path)) for place, path in paths.items()}
    for place, frame in found.items():
        lacking = set(methods[place.member]) - set(frame["method"])
        if lacking:
            raise InputError(
                f"{paths[place]} has no rows of {', '.join(sorted(lacking))}, which the study "
                f"{place.member} trains",
                how_to_make(paths[place]),
            )
    return found


def tidy_table(plan: Plan, measures: Measures, contrasts: pd.DataFrame) -> pd.DataFrame:
    """Values and gains of a table as rows, behind data_set, student and member.

    Args:
        contrasts: of `mechdistill.significance.students`, with a column data_set; its gains become
            rows of `ALL_STUDENTS`.
    """
    keys = [metric.key for metric in plan.metrics]
    wanted = {*plan.methods, *((TEACHER,) if plan.ends else ())}
    parts = []
    for data_set in _shown(plan, measures):
        for place, frame in measures.items():
            if place.data_set == data_set:
                own = frame[frame["metric"].isin(keys) & frame["method"].isin(wanted)]
                own = own[(own["baseline"] == "") | own["baseline"].isin(wanted)]
                parts.append(_placed(own, data_set, place.student, place.member))
        if plan.ends:
            gains = _gains(contrasts, data_set)
            own = gains[gains["metric"].isin(keys)].rename(columns=_AS_GAIN)
            own = own.assign(better=[BY_KEY[metric].better for metric in own["metric"]])
            own = own.reindex(columns=list(COLUMNS))
            parts.append(_placed(own, data_set, ALL_STUDENTS, ""))
    empty = pd.DataFrame(columns=[*PLACE, *COLUMNS])
    return pd.concat(parts, ignore_index=True) if parts else empty


def wide_table(plan: Plan, measures: Measures, contrasts: pd.DataFrame) -> Table:
    """The table as people read it."""
    lines: list[Line] = []
    for data_set in _shown(plan, measures):
        own = {place: f for place, f in measures.items() if place.data_set == data_set}
        for place, frame in own.items():
            lines.append(Line(place.title, "group", ()))
            lines += _student(plan, frame, place.member)
        if plan.ends:
            lines.append(Line(f"{data_set}, {_students(len(own))}", "group", ()))
            lines += _average(plan, _gains(contrasts, data_set))
            lines += _teachers(plan, own)
    return Table(_caption(plan, measures), plan.metrics, tuple(lines))


def _shown(plan: Plan, measures: Measures) -> list[str]:
    there = data_sets(measures)
    return [there[place] for place in plan.data_sets if place < len(there)]


def _students(count: int) -> str:
    return "students averaged" if count > 1 else "one student"


def _student(plan: Plan, frame: pd.DataFrame, member: str) -> list[Line]:
    valued = frame[frame["value"].notna()]
    wrong = dict(zip(valued["method"], valued["degenerate_output"]))
    lines = []
    for method in plan.methods:
        if method in wrong:
            reference = mark_reference(frame) if method == PROPOSED else ""
            cells = value_cells(frame, method, plan.metrics, reference, member)
            kind = "proposed" if method == PROPOSED else "value"
            lines.append(Line(method_name(method), kind, cells, wrong[method]))  # type: ignore[arg-type]
    return lines


def _gains(contrasts: pd.DataFrame, data_set: str) -> pd.DataFrame:
    return contrasts[(contrasts["question"] == GAIN) & (contrasts["data_set"] == data_set)]


def _average(plan: Plan, gains: pd.DataFrame) -> list[Line]:
    """Over plain distillation, and over the mean of the baselines where the table has them."""
    lines = []
    for baseline, rows in gains.groupby("baseline", sort=False):
        rivals = str(baseline).split(",")
        if rivals != [PLAIN] and (len(rivals) == 1 or not set(rivals) <= {*plan.methods}):
            continue
        by_metric = {row["metric"]: row for row in rows.to_dict("records")}
        cells = [_gain_cell(by_metric.get(metric.key), metric) for metric in plan.metrics]
        lines.append(Line(f"average gain over {reference(rivals)}", "gain", tuple(cells)))
    return lines


def reference(rivals: Sequence[str]) -> str:
    """`Vanilla`, `the mean of Vanilla, CWT (adapted)`."""
    listed = ", ".join(map(method_name, rivals))
    return f"the mean of {listed}" if len(rivals) > 1 else listed


def _gain_cell(row: Mapping[Any, Any] | None, metric: Metric) -> Cell:
    if row is None:
        return Cell()
    gain, low, high = (float(row[key]) for key in ("difference", "ci_low", "ci_high"))
    mark, tone = shown_mark(str(row["mark"]), metric)
    left_out = int(row["n_undefined"])
    return Cell(signed(gain), interval(low, high), mark, tone, left_out, row_anchor(row))


def _teachers(plan: Plan, own: Measures) -> list[Line]:
    """One line where all members have the same teacher, as their equal numbers tell."""
    found: dict[tuple[Cell, ...], list[Place]] = {}
    for place, frame in own.items():
        if ((frame["method"] == TEACHER) & frame["value"].notna()).any():
            found.setdefault(value_cells(frame, TEACHER, plan.metrics), []).append(place)
    return [
        Line(
            method_name(TEACHER)
            + (f" of {', '.join(p.student for p in of)}" if len(found) > 1 else ""),
            "teacher",
            value_cells(own[of[0]], TEACHER, plan.metrics, member=of[0].member),
        )
        for of in found.values()
    ]


def _caption(plan: Plan, measures: Measures) -> str:
    shown = _shown(plan, measures)
    parts = [f"Table {plan.number}. {plan.title}{': ' if shown else '.'}{', '.join(shown)}."]
    if not shown:
        return f"{parts[0][:-1]} Not in this study."
    marks = {
        place: mark_reference(frame)
        for place, frame in measures.items()
        if place.data_set in shown and mark_reference(frame)
    }
    parts.append("Mean over test notes and training seeds; in brackets the 95 % interval.")
    if marks:
        listed = "; ".join(f"{place.title}: {method_name(b)}" for place, b in marks.items())
        parts.append(
            "▲ and ▼ in the mech lines: higher or lower than the best baseline on the validation "
            f"notes ({listed}), where both tests agree."
        )
    if plan.ends:
        parts.append(
            "Average gain: mech minus the baselines named, students averaged, notes and seeds "
            "resampled for all of them together; ▲ and ▼ as above."
        )
    if plan.number in (3, 4):
        parts.append("The paper's students there are of other families than its teacher.")
    return " ".join(parts)


def _placed(frame: pd.DataFrame, data_set: str, student: str, member: str) -> pd.DataFrame:
    named = frame.assign(data_set=data_set, student=student, member=member)
    return named[[*PLACE, *frame.columns]]

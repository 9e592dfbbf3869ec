"""What a joined study found, in some sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechdistill.report.formats import count, interval, plain, signed
from mechdistill.report.joined.budgets import out_of_line_rows
from mechdistill.report.joined.claims import ACROSS, verdict_counts, verdict_of
from mechdistill.report.joined.places import Place, data_sets
from mechdistill.report.joined.tables import reference
from mechdistill.report.metrics import TABLE1, Metric, method_name
from mechdistill.report.tables import mark_reference
from mechdistill.report.verdicts import MANY, Verdict
from mechdistill.significance.plan import PROPOSED
from mechdistill.significance.students import GAIN

TOLD = ("focus", "confusion", "macro_f1_gold_present")
"""Metrics that sentences name; the tables have all."""


@dataclass(frozen=True)
class Story:
    """What the sentences are written from.

    Attributes:
        notes: data set -> what its notes are.
        methods, seeds: how many each member trains.
        measures: tidy table of every measure of each member.
        left_out: member -> why.
    """

    study: str
    notes: Mapping[str, str]
    methods: Mapping[Place, int]
    seeds: Mapping[Place, int]
    left_out: Mapping[str, str]
    measures: Mapping[Place, pd.DataFrame]
    contrasts: pd.DataFrame
    claims: pd.DataFrame
    detectable: pd.DataFrame
    budgets: pd.DataFrame

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(self.measures)


def findings(story: Story) -> list[str]:
    """Sentences in the order of the page."""
    return [
        _study(story),
        *(f"Left out: {name}: {reason}" for name, reason in story.left_out.items()),
        *filter(None, (_gains(story, data_set) for data_set in data_sets(story.places))),
        *filter(None, (_marks(story, place) for place in story.places)),
        *(f"Claims, {place.title}: {_counts(story.claims, place)}." for place in story.places),
        _agreement(story),
        *(_across(story.claims, id) for id in ACROSS),
        _detectable(story),
        _budgets(story),
    ]


def _study(story: Story) -> str:
    listed = []
    for data_set in data_sets(story.places):
        students = [place.student for place in story.places if place.data_set == data_set]
        listed.append(f"{data_set} ({story.notes[data_set]}) with students {', '.join(students)}")
    methods = sorted(set(story.methods.values()))
    seeds = sorted(set(story.seeds.values()))
    return (
        f"Study {story.study}: {'; '.join(listed)}; "
        f"{' or '.join(map(str, methods))} methods x {' or '.join(map(str, seeds))} seeds each."
    )


def _gains(story: Story, data_set: str) -> str:
    rows = story.contrasts[
        (story.contrasts["question"] == GAIN) & (story.contrasts["data_set"] == data_set)
    ]
    many = rows[rows["baseline"].str.contains(",")]
    shown = many if len(many) else rows[rows["baseline"] == rows["baseline"].min()]
    if shown.empty:
        return ""
    by_metric = {row["metric"]: row for row in shown.to_dict("records")}
    parts = [
        f"{metric.short} {_with_interval(by_metric[metric.key])}"
        for metric in _told()
        if metric.key in by_metric
    ]
    rivals = str(shown["baseline"].iloc[0]).split(",")
    return f"{data_set}, students averaged, mech minus {reference(rivals)}: {'; '.join(parts)}."


def _marks(story: Story, place: Place) -> str:
    frame = story.measures[place]
    best = mark_reference(frame)
    rows = frame[(frame["method"] == PROPOSED) & (frame["baseline"] == best) & (best != "")]
    by_key = {row["metric"]: row["mark"] for row in rows.to_dict("records")}
    tested = [metric for metric in TABLE1 if metric.key in by_key]
    if not tested:
        return ""
    good = [m.short for m in tested if by_key[m.key] == ("up" if m.better > 0 else "down")]
    bad = [m.short for m in tested if by_key[m.key] == ("down" if m.better > 0 else "up")]
    return (
        f"{place.title}: of {len(tested)} metrics, mech is shown better than "
        f"{method_name(best)} (best baseline on validation) in {_names(good)}, worse in "
        f"{_names(bad)}."
    )


def _names(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "none"


def _counts(claims: pd.DataFrame, place: Place) -> str:
    counts = verdict_counts(claims, place.member)
    return ", ".join(f"{number} {MANY[verdict]}" for verdict, number in counts.items() if number)


def _agreement(story: Story) -> str:
    members = [place.member for place in story.places]
    own = story.claims[
        story.claims["member"].isin(members) & story.claims["id"].str.fullmatch(r"C\d\d")
    ]
    found: dict[str, set[Verdict]] = {}
    for id, label in zip(own["id"], own["verdict"]):
        found.setdefault(str(id), set()).add(verdict_of(str(label)))
    same = [id for id, verdicts in found.items() if verdicts == {Verdict.HOLDS}]
    never = [id for id, verdicts in found.items() if verdicts == {Verdict.DOES_NOT_HOLD}]
    return (
        f"Claims that hold in each of the {count(len(members), 'member')}: "
        f"{', '.join(same) or 'none'}; that do not hold in any: {', '.join(never) or 'none'}."
    )


def _across(claims: pd.DataFrame, id: str) -> str:
    row = claims[(claims["id"] == id) & (claims["student"] == "all")].iloc[0]
    return f"{id}, {row['statement'][0].lower()}{row['statement'][1:]}: {row['verdict']}."


def _detectable(story: Story) -> str:
    parts = []
    for place in story.places:
        own = story.detectable[story.detectable["member"] == place.member]
        values = dict(zip(own["metric"], own["detectable"]))
        known = [f"{m.short} {plain(values[m.key])}" for m in _told() if m.key in values]
        if known:
            parts.append(f"{place.title} {', '.join(known)}")
    return (
        "Smallest difference from the best baseline that would have been found in 80 of 100 "
        f"repetitions: {'; '.join(parts) or 'no baseline was trained'}."
    )


def _budgets(story: Story) -> str:
    methods = dict.fromkeys(row["method"] for row in out_of_line_rows(story.budgets))
    return f"Budgets out of line with plain distillation: {', '.join(methods) or 'none'}."


def _told() -> list[Metric]:
    return [metric for metric in TABLE1 if metric.key in TOLD]


def _with_interval(row: Mapping[Any, Any]) -> str:
    ends = interval(row["ci_low"], row["ci_high"])
    return f"{signed(row['difference'])} {ends}" if ends else "undefined"

"""What is asked of the students of one data set, and the measures that answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from mechdistill.significance.compare import TABLE_METRICS, Measure
from mechdistill.significance.measures import corpus_measures, document_measures
from mechdistill.significance.plan import PAPER_BASELINES, PROPOSED, TEACHER
from mechdistill.significance.students import (
    Contrast,
    cell,
    gain_over_mean,
    larger_less_smaller,
)


@dataclass(frozen=True)
class Trained:
    """A member of a data set: its student, what it trains, and the weights of its student."""

    student: str
    methods: Sequence[str]
    parameters: int


def student_contrasts(members: Mapping[str, Trained]) -> list[Contrast]:
    """Gains over each of the paper's baselines and over their mean; the largest less the smallest.

    Sizes are compared within a family: families differ in more than size.

    Args:
        members: of one data set, by name.
    """
    shared = [
        method
        for method in next(iter(members.values())).methods
        if all(method in member.methods for member in members.values())
    ]
    students = {name: member.student for name, member in members.items()}
    found = []
    if PROPOSED in shared:
        rivals = [method for method in PAPER_BASELINES if method in shared]
        averaged = [rivals] if len(rivals) > 1 else []
        found += [
            gain_over_mean(students, PROPOSED, own) for own in (*[[r] for r in rivals], *averaged)
        ]
    for names in _by_family(students).values():
        by_size = sorted(names, key=lambda name: members[name].parameters)
        if members[by_size[0]].parameters < members[by_size[-1]].parameters:
            ordered = {name: students[name] for name in by_size}
            found += [larger_less_smaller(ordered, method) for method in shared]
    return found


def _by_family(students: Mapping[str, str]) -> dict[str, list[str]]:
    """Family -> members, by the first word of their students (`llama 3 x 48`)."""
    families: dict[str, list[str]] = {}
    for name, student in students.items():
        families.setdefault(student.split()[0], []).append(name)
    return families


def joined_measures(
    scores: Mapping[str, pd.DataFrame],
    predictions: Mapping[str, pd.DataFrame],
    labels: Sequence[str],
    training: Sequence[Sequence[str]],
) -> list[Measure]:
    """The metrics of the paper's tables, of all students of a data set, methods named by `cell`.

    Args:
        scores: score table of each member.
        predictions: likewise.
        labels: the label space.
        training: gold labels of each training note.
    """
    one, other = _stacked(scores), _stacked(predictions)
    measures = [*document_measures(one), *corpus_measures(other, one, labels, training, ())]
    return [measure for measure in measures if measure.name in TABLE_METRICS]


def _stacked(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    parts = []
    for member, frame in frames.items():
        students = frame[frame["method"] != TEACHER]
        named = [cell(member, method) for method in students["method"]]
        parts.append(students.assign(method=named))
    return pd.concat(parts, ignore_index=True)

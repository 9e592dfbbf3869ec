"""One test note read through: its words, its reasoning, and what a top head attends to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.errors import InputError
from mechdistill.heads.places import places_of
from mechdistill.report.attention import AttendedTrace, attended_trace, note_with_attention
from mechdistill.traces.parse import Trace


@dataclass(frozen=True)
class WorkedExample:
    """What the page shows of one note.

    Attributes:
        coarse: note and reasoning under the best coarse head, mean over the early queries.
        refine: under the best refine head, mean over the refinement positions; None where the
            trace has none.
        gold: (code, name) of the true codes, problem order.
        near: likewise of the near-misses.
        answer: codes that the teacher gave.
        status: "ok", or why the trace did not parse.
    """

    coarse: AttendedTrace
    refine: AttendedTrace | None
    gold: tuple[tuple[str, str], ...]
    near: tuple[tuple[str, str], ...]
    answer: tuple[str, ...]
    status: str


def attention_of_best_head(
    rows: pd.DataFrame,
    scores: pd.DataFrame,
    phase: int,
    number: int | None,
    traces: Sequence[Trace],
    examples: Sequence[Example],
    space: LabelSpace,
    tokenizer: Any,
) -> AttendedTrace | None:
    """The best head's attention on the worked example; None where none may be shown.

    Args:
        rows: attention rows of the teacher.
        scores: heads of the phase, best first (columns layer, head).
        phase: 1 or 2.
        number: of the test note, or None; where its attention was not kept, another is shown.
        traces: the teacher's, all splits.
        examples: all splits.
        space: the label space.
        tokenizer: the study's.

    Raises:
        InputError: there is no such test note, or no attention of the phase at all.
    """
    if number is None:
        return None
    shown = note_with_attention(rows, phase, worked_note(traces, number))
    trace = next(trace for trace in traces if trace.example == shown)
    example = next(example for example in examples if example.example == shown)
    best = scores.iloc[0]
    place = places_of(trace, example, space, tokenizer)
    head = int(best["layer"]), int(best["head"])
    return attended_trace(rows, phase, head, place, trace, tokenizer)


def worked_note(traces: Sequence[Trace], number: int) -> str:
    """Example id of the test note with this number (from 0).

    Raises:
        InputError: there are fewer test notes.
    """
    names = [trace.example for trace in traces if trace.split == "test"]
    if number >= len(names):
        raise InputError(
            f"report.worked_example is {number}, and there are {len(names)} test notes",
            f"give a number from 0 to {len(names) - 1}",
        )
    return names[number]


def worked_example(
    rows: pd.DataFrame,
    coarse_scores: pd.DataFrame,
    refine_scores: pd.DataFrame,
    number: int | None,
    traces: Sequence[Trace],
    examples: Sequence[Example],
    space: LabelSpace,
    tokenizer: Any,
) -> WorkedExample | None:
    """Everything that the page shows of one note (see `attention_of_best_head`)."""
    known = traces, examples, space, tokenizer
    coarse = attention_of_best_head(rows, coarse_scores, 1, number, *known)
    if coarse is None:
        return None
    trace = next(trace for trace in traces if trace.example == coarse.example)
    example = next(example for example in examples if example.example == coarse.example)
    has_refine = ((rows["phase"] == 2) & (rows["example"] == coarse.example)).any()
    refine = None
    if has_refine:
        best = refine_scores.iloc[0]
        place = places_of(trace, example, space, tokenizer)
        head = int(best["layer"]), int(best["head"])
        refine = attended_trace(rows, 2, head, place, trace, tokenizer)
    named = [
        tuple((code, space.label(code).text) for code in codes)
        for codes in (example.gold, example.near)
    ]
    return WorkedExample(coarse, refine, named[0], named[1], trace.answer, trace.status)

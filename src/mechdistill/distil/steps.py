"""The steps of a trace's reasoning: the overview, and of each clause its comparison and verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from mechdistill.data.prompts import VERDICT
from mechdistill.data.token_spans import token_spans
from mechdistill.traces.parse import Trace

_SENTENCE_END = re.compile(r"\.(?=\s|$)")  # not the point inside a code


@dataclass(frozen=True)
class Step:
    """Tokens [start, end) of z = prompt + trace. `labels`: codes that the step names, in order."""

    kind: Literal["overview", "comparison", "verdict"]
    start: int
    end: int
    labels: tuple[str, ...]


def reasoning_steps(trace: Trace, tokenizer: Any) -> tuple[Step, ...]:
    """Steps in order; together they hold every token of the reasoning, and none of the answer.

    The overview ends where the first clause begins. A clause is a sentence; its verdict begins at
    the verdict mark, and a clause without one is a comparison alone. Reasoning without a clause is
    one overview.
    """
    begin, end = trace.prompt_length, trace.reasoning_end
    first = trace.late_start if begin < trace.late_start < end else end
    steps = [_step(trace, "overview", begin, first)]
    if first < end:
        for start, verdict, stop in _clauses(trace, tokenizer, first, end):
            if verdict > start:
                steps.append(_step(trace, "comparison", start, verdict))
            if stop > verdict:
                steps.append(_step(trace, "verdict", verdict, stop))
    return tuple(step for step in steps if step.start < step.end)


def _clauses(trace: Trace, tokenizer: Any, first: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(start, verdict, end) of each sentence; a verdict that is not there lies at the end."""
    text, spans = token_spans(tokenizer, trace.tokens[first:end])

    def token(character: int) -> int:
        """The token that spells a character, or the space before it."""
        return first + sum(stop <= character for _, stop in spans)

    cuts = [token(match.end()) for match in _SENTENCE_END.finditer(text)]
    edges = sorted({first, *cuts, end})
    marks = [token(match.start()) for match in re.finditer(re.escape(VERDICT), text)]
    for start, stop in pairwise(edges):
        yield start, min([mark for mark in marks if start <= mark < stop], default=stop), stop


def _step(
    trace: Trace, kind: Literal["overview", "comparison", "verdict"], start: int, end: int
) -> Step:
    named = [m.code for m in trace.mentions if m.kind == "label" and start <= m.start < end]
    return Step(kind, start, end, tuple(dict.fromkeys(named)))

"""Implicit positions: tokens without words that some models think at between prompt and trace.

How many, and which token stands there, is a part of the model's configuration. Nobody else sees
them: what such a model writes is parsed as if they were not there, and a trace that it is read on
gets them inserted first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mechdistill.traces.parse import Trace

KEY = "implicit_prompt"
"""Of a model's configuration."""


def implicit_tokens(model: Any) -> tuple[int, ...]:
    """Tokens that `model` reads behind every prompt; most models read none."""
    return tuple(getattr(model.config, KEY, ()))


def as_read_by(model: Any, traces: Iterable[Trace]) -> list[Trace]:
    """Traces as `model` reads them."""
    return [inserted(trace, implicit_tokens(model)) for trace in traces]


def inserted(trace: Trace, tokens: tuple[int, ...]) -> Trace:
    """The trace with tokens between prompt and reasoning; all positions move with it.

    The inserted tokens count as prompt.
    """
    if not tokens:
        return trace
    by, start = len(tokens), trace.prompt_length
    return replace(
        trace,
        tokens=(*trace.tokens[:start], *tokens, *trace.tokens[start:]),
        prompt_length=start + by,
        early=tuple(query + by for query in trace.early),
        late_start=trace.late_start + by if trace.late_start >= 0 else trace.late_start,
        reasoning_end=trace.reasoning_end + by,
        mentions=tuple(replace(m, start=m.start + by, end=m.end + by) for m in trace.mentions),
        events=tuple(replace(event, query=event.query + by) for event in trace.events),
        refine=tuple(
            replace(
                at,
                query=at.query + by,
                shortlist=tuple(p + by for p in at.shortlist),
                near_miss=tuple(p + by for p in at.near_miss),
            )
            for at in trace.refine
        ),
    )

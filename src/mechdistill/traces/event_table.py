"""Decision events of many traces as one table, each with the margin by which it is decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

import pandas as pd
import torch

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.models.batching import left_pad, pad_right
from mechdistill.models.margin import decision_margin
from mechdistill.models.read_out import logits_where
from mechdistill.traces.decision_events import DecisionEvent, decision_events
from mechdistill.traces.parse import Trace

COLUMNS = ("example", "split", *(field.name for field in fields(DecisionEvent)), "margin")


def event_table(
    model: Any,
    traces: Sequence[Trace],
    examples: Iterable[Example],
    tokenizer: Any,
    space: LabelSpace,
    *,
    batch_size: int,
) -> pd.DataFrame:
    """Find all decision events and measure their margins on the traces, teacher-forced.

    Args:
        model: in evaluation mode.
        traces: with tokens of `tokenizer`.
        examples: at least those that the traces belong to.
        batch_size: traces a forward pass.

    Returns:
        example, split, the fields of `DecisionEvent`, margin: logit of the token that is taken less
        the highest of its foils, in logits. In the order of the traces, and of their tokens.
    """
    known = {example.example: example for example in examples}
    found = [decision_events(trace, known[trace.example], tokenizer, space) for trace in traces]
    margins = _margins(model, traces, found, tokenizer.pad_token_id, batch_size)
    rows = [
        {"example": trace.example, "split": trace.split, **asdict(event), "margin": margin}
        for t, (trace, events) in enumerate(zip(traces, found, strict=True))
        for event, margin in zip(events, margins.get(t, ()), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _margins(
    model: Any,
    traces: Sequence[Trace],
    found: Sequence[Sequence[DecisionEvent]],
    pad_id: int,
    batch_size: int,
) -> dict[int, list[float]]:
    """By trace, in the order of its events; traces without one are not run."""
    margins: dict[int, list[float]] = {}
    for chosen in _in_batches(traces, found, batch_size):
        batch = left_pad([traces[t].tokens for t in chosen], pad_id, model.device)
        at = batch.positions([[event.query for event in found[t]] for t in chosen])
        row, slot = (at >= 0).nonzero(as_tuple=True)
        events = [event for t in chosen for event in found[t]]
        with torch.inference_mode():
            logits = logits_where(
                model, batch.ids, (row, at[row, slot]), attention_mask=batch.mask
            ).float()
        targets = torch.tensor([event.target for event in events], device=model.device)
        foils = pad_right([event.foils for event in events], -1, model.device)
        values = iter(decision_margin(logits, targets, foils).tolist())
        margins |= {t: [next(values) for _ in found[t]] for t in chosen}
    return margins


def _in_batches(
    traces: Sequence[Trace], found: Sequence[Sequence[DecisionEvent]], batch_size: int
) -> Iterator[list[int]]:
    """Traces with an event, in batches of like length."""
    some = [t for t, events in enumerate(found) if events]
    order = sorted(some, key=lambda t: (len(traces[t].tokens), t))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]

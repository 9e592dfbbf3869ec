"""What a head's effect on decisions is held against: tokens that decide nothing, events shuffled.

A head that moves any token's margin, or the margin between any two labels, does nothing for a
decision in particular. So each event comes with two nulls. *Other token*: a token of the same trace
and segment that is no decision, against as many rivals as the event leaves. *Shuffled*: the event's
own position, read with the tokens of events of other examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from mechdistill.models.batching import left_pad
from mechdistill.models.read_out import logits_where
from mechdistill.traces.parse import Trace

EVENTS = ("example", "split", "kind", "segment", "form", "query", "target", "foils", "repeat")
"""Columns read of the table of events (`mechdistill.traces.event_table`)."""
OWN, OTHER, SHUFFLED = "", "other_token", "shuffled"
"""Names in tables: of the events themselves, and of their nulls."""


@dataclass(frozen=True)
class Reading:
    """A choice between next tokens, see `mechdistill.patching.decision_sweep.Decision`."""

    query: int
    target: int
    foils: tuple[int, ...]


@dataclass(frozen=True)
class Matched:
    """A position of a trace that decides nothing, and how many rivals its token is to have."""

    query: int
    rivals: int


def readings(events: pd.DataFrame) -> list[Reading]:
    """Events as they are read."""
    return [
        Reading(int(query), int(target), tuple(int(foil) for foil in foils))
        for query, target, foils in zip(
            events["query"], events["target"], events["foils"], strict=True
        )
    ]


def matched_tokens(
    trace: Trace,
    segment: str,
    decided: Sequence[int],
    events: Sequence[Reading],
    seed: int,
    *,
    before: int = 0,
) -> list[Matched]:
    """A token of the trace's segment for each event, drawn among those that are no decision.

    None is drawn twice before all were; where the segment has none, there is none.

    Args:
        segment: reasoning or answer.
        decided: query positions of all decision events of the trace.
        events: those to match.
        before: tokens of the segment that must stand between its begin and the token.
    """
    start, end = trace.prompt_length, trace.reasoning_end
    if segment == "answer":
        start, end = end, len(trace.tokens)
    free = sorted(set(range(start - 1 + before, end - 1)) - set(decided))
    if not free:
        return []
    rng = np.random.default_rng([seed, 7, *trace.example.encode()])
    order = [free[i] for i in rng.permutation(len(free))]
    return [Matched(order[i % len(free)], len(event.foils)) for i, event in enumerate(events)]


@torch.inference_mode()
def read_matched(
    model: Any,
    traces: Sequence[tuple[Trace, Sequence[Matched]]],
    *,
    pad_id: int,
    batch_size: int,
) -> list[list[Reading]]:
    """The token that the trace has there against the most likely others: a margin of the model's.

    Args:
        traces: each with one position at least.
        batch_size: traces a forward pass.

    Returns:
        Readings of each trace's positions.
    """
    found: list[list[Reading]] = []
    for start in range(0, len(traces), batch_size):
        chosen = traces[start : start + batch_size]
        batch = left_pad([trace.tokens for trace, _ in chosen], pad_id, model.device)
        at = batch.positions([[place.query for place in places] for _, places in chosen])
        row, slot = (at >= 0).nonzero(as_tuple=True)
        logits = iter(
            logits_where(model, batch.ids, (row, at[row, slot]), attention_mask=batch.mask).float()
        )
        for trace, places in chosen:
            own = []
            for place in places:
                taken = trace.tokens[place.query + 1]
                others = next(logits)
                others[taken] = -torch.inf
                rivals = others.topk(min(place.rivals, len(others) - 1)).indices.tolist()
                own.append(Reading(place.query, taken, tuple(rivals)))
            found.append(own)
    return found


def shuffled_events(
    events: pd.DataFrame, draws: int, seed: int
) -> Mapping[tuple[str, int], list[Reading]]:
    """For each event, others' tokens to read at its position.

    They are drawn among the events of other examples in which the same sort of thing is named
    (`form`); their targets may be the event's own: what a head does whatever is decided counts for
    all of them alike.

    Args:
        events: of one kind and segment.
        draws: for each event, fewer where there are not as many.

    Returns:
        (example, query) -> readings, none where no other example has such an event.
    """
    found: dict[tuple[str, int], list[Reading]] = {}
    for _, alike in events.groupby("form", sort=True):
        pool = list(zip(alike["example"], readings(alike), strict=True))
        for example, event in pool:
            others = [other for of, other in pool if of != example]
            rng = np.random.default_rng([seed, 8, event.query, *example.encode()])
            picked = rng.permutation(len(others))[:draws]
            found[example, event.query] = [
                Reading(event.query, others[i].target, others[i].foils) for i in picked
            ]
    return found

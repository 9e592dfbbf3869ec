"""Region events before which the region can be looked for, and how far back that makes sense.

An earlier token tells something of its own accord only where the reasoning has not named the region
yet. Behind an earlier event, that event's decision would be read; before the reasoning, the prompt.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mechdistill.data.labels import LabelSpace
from mechdistill.patching.event_families import first_events
from mechdistill.patching.null_events import EVENTS
from mechdistill.traces.decision_events import Family
from mechdistill.traces.parse import Trace

FAMILY: Family = ("region", "reasoning")
COLUMNS = (*EVENTS, "region")
"""Columns read of the table of events."""


def undecided(events: pd.DataFrame, traces: Sequence[Trace], space: LabelSpace) -> pd.DataFrame:
    """First region events of the reasoning.

    Args:
        events: columns `COLUMNS`.

    Returns:
        Those of the traces, index as in `events`, with named (the reasoning names the region, or a
        label of it, before the event's token) and room (the largest offset d at which position
        query - d predicts a token of the reasoning, and is behind the query of the event before).
    """
    by_name = {trace.example: trace for trace in traces}
    events = events[events["example"].isin(by_name)]
    taken: dict[str, list[int]] = defaultdict(list)
    for name, query in zip(events["example"], events["query"], strict=True):
        taken[name].append(int(query))
    ordered = {name: sorted(set(queries)) for name, queries in taken.items()}
    first = first_events(events, FAMILY)
    named, room = [], []
    for name, query, region in zip(first["example"], first["query"], first["region"], strict=True):
        trace, own = by_name[name], ordered[name]
        named.append(region in _named_before(trace, int(query) + 1, space))
        place = bisect_left(own, int(query))
        floor = trace.prompt_length - 1
        if place:
            floor = max(floor, own[place - 1] + 1)
        room.append(int(query) - floor)
    return first.assign(named=np.array(named, bool), room=np.array(room, np.int64))


def with_room(found: pd.DataFrame, offset: int) -> pd.DataFrame:
    """Events of `undecided` that can be looked at so many tokens before."""
    return found[~found["named"] & (found["room"] >= offset)]


def only_first(events: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """All events, of which only `kept` count as first of `FAMILY`; the others stay decisions."""
    kind, segment = FAMILY
    out = (events["kind"] == kind) & (events["segment"] == segment)
    out &= ~events.index.isin(kept.index)
    return events.assign(repeat=events["repeat"].mask(out, events["repeat"] + 1))


def _named_before(trace: Trace, token: int, space: LabelSpace) -> set[str]:
    return {
        mention.code if mention.kind == "region" else space.label(mention.code).region
        for mention in trace.mentions
        if mention.end <= token
    }

"""How often which decision is found in the teacher's traces."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mechdistill.data.splits import SPLITS
from mechdistill.traces.decision_events import KINDS, SEGMENTS

EVENTS = ("example", "split", "segment", "kind", "foils", "repeat", "margin")
"""Columns read of the table of events."""


def event_counts(events: pd.DataFrame, notes: Mapping[str, int]) -> pd.DataFrame:
    """Numbers of decision events by split, segment and kind.

    Args:
        events: of `mechdistill.traces.event_table`.
        notes: number of traces of each split.

    Returns:
        split, segment, kind; `notes`: traces of the split; `with_event`: those with such an event;
        `events`; `first`: those that do not repeat an earlier pick; `foils`: mean number of tokens
        that an event leaves; `margin`: mean margin of the first ones. Missing without an event.
    """
    rows = []
    for split in [name for name in SPLITS if notes.get(name)]:
        for segment in SEGMENTS:
            for kind in KINDS:
                own = events.query("split == @split and segment == @segment and kind == @kind")
                first = own[own["repeat"] == 0]
                rows.append(
                    {
                        "split": split,
                        "segment": segment,
                        "kind": kind,
                        "notes": notes[split],
                        "with_event": own["example"].nunique(),
                        "events": len(own),
                        "first": len(first),
                        "foils": own["foils"].map(len).mean(),
                        "margin": first["margin"].mean(),
                    }
                )
    return pd.DataFrame(rows)

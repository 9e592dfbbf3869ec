"""Decision events of one kind and segment, with the traces that hold them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mechdistill.patching.ablation import ForcedTrace
from mechdistill.patching.null_events import Reading, readings
from mechdistill.traces.decision_events import Family
from mechdistill.traces.parse import Trace


def first_events(events: pd.DataFrame, family: Family) -> pd.DataFrame:
    """Those of a family that repeat no earlier pick.

    Args:
        events: columns `mechdistill.patching.null_events.EVENTS`.
    """
    kind, segment = family
    chosen = (events["kind"] == kind) & (events["segment"] == segment) & (events["repeat"] == 0)
    return events[chosen]


def traces_with(traces: Sequence[Trace], events: pd.DataFrame) -> list[tuple[Trace, list[Reading]]]:
    """Each trace that has such events, with what is to be read at them."""
    by_example = {name: readings(rows) for name, rows in events.groupby("example", sort=False)}
    return [(trace, by_example[trace.example]) for trace in traces if trace.example in by_example]


def forced_traces(given: Sequence[tuple[Trace, Sequence[Reading]]]) -> list[ForcedTrace]:
    """Their tokens and decisions, as `mechdistill.patching.ablation` runs them."""
    return [ForcedTrace(trace.tokens, own) for trace, own in given]

"""Do the twins do what they are made for? The gap that patching is to close, unpatched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from mechdistill.patching.margin_sweep import EventEffects

COLUMNS = ["phase", "twin", "example", "metric", "clean", "corrupted"]


def margin_gaps(effects: Sequence[EventEffects], phase: int, twin: str) -> pd.DataFrame:
    """Mean margins over each example's events, clean and corrupted; columns as COLUMNS."""
    events = pd.DataFrame(
        [(phase, twin, e.example, e.metric, e.clean, e.corrupted) for e in effects],
        columns=COLUMNS,
    )
    return events.groupby(COLUMNS[:4], sort=False).mean().reset_index()


def written_gaps(
    clean: Mapping[str, float], corrupted: Mapping[str, float], phase: int, twin: str, metric: str
) -> pd.DataFrame:
    """A metric of the written traces, by example id; columns as COLUMNS."""
    rows = [(phase, twin, name, metric, clean[name], corrupted[name]) for name in corrupted]
    return pd.DataFrame(rows, columns=COLUMNS)

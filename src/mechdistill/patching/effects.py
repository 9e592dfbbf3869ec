"""Results of sweeps as tables, one row an observation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from mechdistill.patching.conditions import Condition
from mechdistill.patching.decision_sweep import DIRECTIONS, SITES
from mechdistill.patching.margin_sweep import EventEffects

CELL = ["phase", "twin", "site", "direction", "ranking", "bin"]
"""Columns that name a condition, less draw and metric."""
OBSERVED = ["example", "metric", "clean", "corrupted", "patched"]


def single_head_table(
    effects: Iterable[EventEffects], conditions: Sequence[Condition], phase: int, twin: str
) -> pd.DataFrame:
    """One row a head, site, direction and event.

    Args:
        conditions: one head each, in the order of the sweep.

    Returns:
        phase, twin, site, direction, layer, head, example, event, metric, clean, corrupted and
        patched.
    """
    heads = [next(iter(condition.heads)) for condition in conditions]
    records = [
        (
            phase,
            twin,
            site,
            direction,
            *head,
            e.example,
            e.event,
            e.metric,
            e.clean,
            e.corrupted,
            value,
        )
        for e in effects
        for i, site in enumerate(SITES)
        for j, direction in enumerate(DIRECTIONS)
        for head, value in zip(heads, e.patched[i, j].tolist(), strict=True)
    ]
    columns = ["phase", "twin", "site", "direction", "layer", "head", "example", "event"]
    return pd.DataFrame(records, columns=[*columns, *OBSERVED[1:]])


def margin_table(
    effects: Iterable[EventEffects],
    conditions: Sequence[Condition],
    sets: Sequence[frozenset[tuple[int, int]]],
    phase: int,
    twin: str,
    sites: Sequence[str] = SITES,
) -> pd.DataFrame:
    """One row a condition, site, direction, example and metric: means over the example's events.

    Args:
        conditions: what is reported; several may have the same heads.
        sets: the sets of heads in the order of the sweep.
        sites: the sites of the sweep.

    Returns:
        phase, twin, site, direction, ranking, bin, draw, example, metric, clean, corrupted and
        patched.
    """
    column = {heads: index for index, heads in enumerate(sets)}
    by_example: dict[tuple[str, str], list[EventEffects]] = {}
    for effect in effects:
        by_example.setdefault((effect.example, effect.metric), []).append(effect)
    records = []
    for (example, metric), own in by_example.items():
        patched = np.stack([e.patched for e in own]).mean(axis=0, dtype=np.float64)
        clean = float(np.mean([e.clean for e in own]))
        corrupted = float(np.mean([e.corrupted for e in own]))
        for c in conditions:
            for i, site in enumerate(sites):
                for j, direction in enumerate(DIRECTIONS):
                    value = float(patched[i, j, column[c.heads]])
                    cell = (phase, twin, site, direction, c.ranking, c.bin, c.draw)
                    records.append((*cell, example, metric, clean, corrupted, value))
    return pd.DataFrame(records, columns=[*CELL, "draw", *OBSERVED])

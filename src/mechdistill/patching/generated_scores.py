"""Score what patched runs wrote: each distinct text once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from mechdistill.evaluate.confusion import whose_window
from mechdistill.patching.conditions import Condition
from mechdistill.patching.effects import CELL, OBSERVED
from mechdistill.patching.generated_sweep import Parse, PatchedRun, Side
from mechdistill.patching.reader import Score
from mechdistill.traces.parse import Trace


def generated_table(
    runs: Mapping[str, Sequence[PatchedRun]],
    sides: Mapping[str, tuple[Side, Side]],
    conditions: Sequence[Condition],
    sets: Sequence[frozenset[tuple[int, int]]],
    phase: int,
    twin: str,
    scores: Mapping[str, Score],
    parse: Parse,
) -> pd.DataFrame:
    """One row a condition, site, direction, example and metric.

    Args:
        runs: by example id.
        sides: clean and corrupted side by example id.
        conditions: what is reported; several may have the same heads.
        sets: the sets of heads in the order of the sweep.
        scores: by name of the metric.

    Returns:
        phase, twin, site, direction, ranking, bin, draw, example, metric, clean, corrupted, patched
        and `window`, where Confusion is read in phase 2: "own", at the refinement positions of the
        run; "donor", at the donor's, since the run has none; "none", neither has one: its value is
        null.
    """
    traces, donors = _distinct(runs, sides, parse)
    values = {
        metric: dict(zip(traces, score(list(traces.values()), list(donors.values())).tolist()))
        for metric, score in scores.items()
    }
    reported: dict[frozenset[tuple[int, int]], list[Condition]] = {}
    for condition in conditions:
        reported.setdefault(condition.heads, []).append(condition)

    records = []
    for example, own in runs.items():
        unpatched: list[Key] = [(example, "", side.run.tokens) for side in sides[example]]
        for run in own:
            key = (example, run.direction, run.tokens)
            window = "own" if phase == 1 else whose_window(traces[key], donors[key])
            for c in reported[sets[run.condition]]:
                cell = (phase, twin, run.site, run.direction, c.ranking, c.bin, c.draw)
                for metric, of in values.items():
                    row = (*(of[k] for k in unpatched), of[key], window)
                    records.append((*cell, example, metric, *row))
    return pd.DataFrame(records, columns=[*CELL, "draw", *OBSERVED, "window"])


Key = tuple[str, str, tuple[int, ...]]
"""Example, direction ("" for an unpatched run), generated ids."""


def _distinct(
    runs: Mapping[str, Sequence[PatchedRun]], sides: Mapping[str, tuple[Side, Side]], parse: Parse
) -> tuple[dict[Key, Trace], dict[Key, Trace]]:
    """Each distinct text as a trace, and its donor."""
    traces: dict[Key, Trace] = {}
    donors: dict[Key, Trace] = {}
    for example, own in runs.items():
        clean, corrupted = sides[example]
        for side in (clean, corrupted):
            key: Key = (example, "", side.run.tokens)
            traces[key], donors[key] = side.trace, clean.trace
        for run in own:
            key = (example, run.direction, run.tokens)
            if key not in traces:
                traces[key] = parse(example, run.tokens)
                donors[key] = (clean if run.direction == "denoise" else corrupted).trace
    return traces, donors

"""Heads that count for a region's decision some tokens before it, beside those that decide it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mechdistill.heads.overlap import heads_above_null, shared_by_chance
from mechdistill.heads.resampling import Floats, interval, plain_and_resampled, weighted_means
from mechdistill.patching.calibration import EFFECTS as CALIBRATED
from mechdistill.patching.calibration import calibrate
from mechdistill.patching.conditions import Head
from mechdistill.patching.undecided import FAMILY

EFFECTS = ("offset", *(c for c in CALIBRATED if c not in ("kind", "segment", "attribution")))
SETS = (
    *("offset", "n_heads", "eliciting", "own", "shared", "expected", "p", "depth", "own_depth"),
    *("note_mass", "note_low", "note_high", "uniform", "own_mass", "excess_low", "excess_high"),
    "notes",
)
"""Columns of the two tables."""


def effects_before(
    ablation: pd.DataFrame, *, level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Every head at every offset against its nulls (`mechdistill.patching.calibration.calibrate`).

    Args:
        ablation: of `mechdistill.patching.elicitation.ablate_before_events`.
    """
    tables = []
    kind, segment = FAMILY
    for offset, rows in ablation.groupby("offset", sort=True):
        whole = rows.assign(kind=kind, segment=segment, attribution=np.nan)
        table = calibrate(whole, level=level, resamples=resamples, seed=seed)
        tables.append(table.assign(offset=offset)[list(EFFECTS)])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(EFFECTS))


def eliciting_sets(
    effects: pd.DataFrame,
    at_events: pd.DataFrame,
    attention: pd.DataFrame,
    *,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """The heads that count at each offset, beside those that count at the events themselves.

    Args:
        effects: of `effects_before`.
        at_events: of `mechdistill.patching.calibration.calibrate`.
        attention: of `mechdistill.patching.elicitation.note_attention`.
        resamples, seed: of the bootstrap over notes.

    Returns:
        offset, n_heads, eliciting and own (numbers of heads), shared, expected (if both were drawn
        from all heads), p (two-sided, hypergeometric: twice the smaller tail), depth and own_depth
        (mean layer, 0 the first and 1 the last), note_mass (mean attention of the eliciting heads
        on the note, at that offset) with note_low and note_high, uniform, own_mass (of the own
        heads at the same tokens), excess_low and excess_high (of note_mass - uniform), notes.
    """
    kind, segment = FAMILY
    at_events = at_events[(at_events["kind"] == kind) & (at_events["segment"] == segment)]
    own = heads_above_null(at_events)
    records = []
    for offset, rows in effects.groupby("offset", sort=True):
        heads, found = len(rows), heads_above_null(rows)
        deepest = max(int(rows["layer"].max()), 1)
        here = attention[attention["offset"] == offset]
        records.append(
            {
                **{"offset": offset, "n_heads": heads, "eliciting": len(found), "own": len(own)},
                **shared_by_chance(found, own, heads),
                **{"depth": _depth(found, deepest), "own_depth": _depth(own, deepest)},
                **_on_note(here, found, own, resamples, seed),
            }
        )
    return pd.DataFrame.from_records(records, columns=list(SETS))


def _depth(heads: Sequence[Head], deepest: int) -> float:
    return float(np.mean([layer / deepest for layer, _ in heads])) if heads else np.nan


def _on_note(
    attention: pd.DataFrame, found: Sequence[Head], own: Sequence[Head], resamples: int, seed: int
) -> dict[str, float]:
    uniform = attention.groupby("example")["uniform"].first()
    masses = [_mass(attention, heads, uniform.index) for heads in (found, own)]
    values = np.column_stack([*masses, uniform.to_numpy(float)])
    means = weighted_means(values, plain_and_resampled(len(values), resamples, seed))
    low, high = interval(means[1:, :1])
    excess = interval(means[1:, :1] - means[1:, 2:])
    return {
        **{"note_mass": float(means[0, 0]), "note_low": float(low[0]), "note_high": float(high[0])},
        **{"uniform": float(means[0, 2]), "own_mass": float(means[0, 1])},
        **{"excess_low": float(excess[0][0]), "excess_high": float(excess[1][0])},
        **{"notes": len(values)},
    }


def _mass(attention: pd.DataFrame, heads: Sequence[Head], examples: pd.Index) -> Floats:
    """Mean over the heads, by example; NaN without heads."""
    keys = zip(attention["layer"], attention["head"], strict=True)
    rows = attention[[key in heads for key in keys]]
    mean: Floats = rows.groupby("example")["mass"].mean().reindex(examples).to_numpy(float)
    return mean

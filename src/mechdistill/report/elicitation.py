"""The region some tokens before it is decided: what probes read, and the heads that count there."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from mechdistill.report.formats import MISSING, interval, percent, plain, signed

PROBE = (
    *("offset", "layer", "accuracy", "ci_low", "ci_high", "shuffled", "majority"),
    *("gain", "gain_low", "gain_high", "n", "notes"),
)
SETS = (
    *("offset", "n_heads", "eliciting", "own", "shared", "expected", "p", "depth", "own_depth"),
    *("note_mass", "note_low", "note_high", "uniform", "own_mass"),
)
"""Columns read of the two tables."""
HEADS = (
    *("count", "own", "shared", "expected", "p", "depth", "own_depth"),
    *("note", "note_ends", "uniform", "own_note"),
)
"""Cells of a row that are of heads: missing where none was ablated."""


def middle_layer(layers: int) -> int:
    """The layer behind which half of the model lies; probes are read there, whatever they find."""
    return layers // 2


def at_middle(probe: pd.DataFrame, layers: int) -> pd.DataFrame:
    """One row an offset, in their order.

    Args:
        probe: of `mechdistill.patching.region_probe.probe_regions`.
        layers: of the model.
    """
    return probe[probe["layer"] == middle_layer(layers)].sort_values("offset")


def elicitation_rows(probe: pd.DataFrame, sets: pd.DataFrame, layers: int) -> list[dict[str, Any]]:
    """A row an offset at which a probe read the region, with the heads that were ablated there.

    Args:
        probe: of `mechdistill.patching.region_probe.probe_regions`.
        sets: of `mechdistill.patching.eliciting_heads.eliciting_sets`.
        layers: of the model.
    """
    by_offset = {row["offset"]: row for row in sets.to_dict("records")}
    return [
        {
            **{name: row[name] for name in ("offset", "notes", "n")},
            "accuracy": percent(100 * row["accuracy"]),
            "ends": interval(100 * row["ci_low"], 100 * row["ci_high"], 0),
            "shuffled": percent(100 * row["shuffled"]),
            "majority": percent(100 * row["majority"]),
            "gain": signed(row["gain"], 2),
            "gain_ends": interval(row["gain_low"], row["gain_high"], 2),
            **_heads(by_offset.get(row["offset"])),
        }
        for row in at_middle(probe, layers).to_dict("records")
    ]


def _heads(row: Mapping[Hashable, Any] | None) -> dict[str, str]:
    if row is None:
        return dict.fromkeys(HEADS, MISSING) | {"note_ends": ""}
    return {
        "count": f"{row['eliciting']} of {row['n_heads']}",
        **{name: str(row[name]) for name in ("own", "shared")},
        **{name: plain(row[name], 2) for name in ("expected", "p", "depth", "own_depth")},
        "note": percent(100 * row["note_mass"]),
        "note_ends": interval(100 * row["note_low"], 100 * row["note_high"], 0),
        "uniform": percent(100 * row["uniform"]),
        "own_note": percent(100 * row["own_mass"]),
    }

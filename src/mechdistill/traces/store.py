"""Traces on disk: one Parquet row a trace, mentions, events and refinement positions nested."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pandas as pd

from mechdistill.artifacts import how_to_make, plain, read_table, write_table
from mechdistill.errors import InputError
from mechdistill.traces.parse import Event, Mention, RefinePosition, Trace

_NESTED = {"mentions": Mention, "events": Event, "refine": RefinePosition}


def write_traces(path: str | Path, traces: Iterable[Trace]) -> None:
    """Write traces as a Parquet table."""
    write_table(path, pd.DataFrame([asdict(trace) for trace in traces]))


def read_traces(path: str | Path, split: str | None = None) -> list[Trace]:
    """Read traces, of one split if it is named.

    Raises:
        InputError: the file is missing or damaged, a column is missing, or no row has the split.
    """
    frame = read_table(path, [field.name for field in fields(Trace)])
    if split is not None:
        frame = frame[frame["split"] == split]
        if frame.empty:
            raise InputError(
                f"{path} has no trace of split {split!r}",
                how_to_make(path),
            )
    return [_trace(row) for row in frame.to_dict("records")]


def _trace(row: Mapping[Any, Any]) -> Trace:
    values = {key: plain(value) for key, value in row.items() if key not in _NESTED}
    nested: dict[str, Any] = {
        key: tuple(kind(**{k: plain(v) for k, v in item.items()}) for item in row[key])
        for key, kind in _NESTED.items()
    }
    return Trace(**values, **nested)

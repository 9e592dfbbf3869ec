"""The table that every family of metrics returns: one row an example and metric."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd


def score_rows(rows: Iterable[tuple[str, str, float]]) -> pd.DataFrame:
    """Rows (example, metric, value); value nan where the metric is undefined for the example."""
    frame = pd.DataFrame(list(rows), columns=["example", "metric", "value"])
    return frame.astype({"value": "float64"})  # no row at all would leave the type open


def labelled(frame: pd.DataFrame, model: str, method: str, seed: int) -> pd.DataFrame:
    """The frame with the columns that name the model in front."""
    named = frame.assign(model=model, method=method, seed=seed)
    return named[["model", "method", "seed", *frame.columns]].reset_index(drop=True)

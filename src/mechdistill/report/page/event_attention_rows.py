"""Rows of the page's table of what heads attend to at decisions."""

from __future__ import annotations

import pandas as pd

from mechdistill.report.event_attention import PLACES
from mechdistill.report.formats import MISSING, interval, plain
from mechdistill.report.page.rows import Row

AT = (
    ("decisions", ("mass", "ci_low", "ci_high"), "n"),
    ("other tokens", ("other", "other_low", "other_high"), "n_other"),
    ("evenly spread", ("uniform",), "n"),
)


def event_attention_rows(shares: pd.DataFrame) -> list[Row]:
    """Three rows a kind and segment, with a cell a place.

    Args:
        shares: of `mechdistill.report.event_attention.attention_shares`.
    """
    return [
        {
            **{"kind": kind, "segment": segment, "at": at},
            **{"heads": own["heads"].iloc[0], "notes": own[notes].iloc[0]},
            "cells": [_cell(own[own["place"] == place], columns) for place in PLACES],
        }
        for (kind, segment), own in shares.groupby(["kind", "segment"], sort=False)
        for at, columns, notes in AT
    ]


def _cell(shares: pd.DataFrame, columns: tuple[str, ...]) -> Row:
    if shares.empty:
        return {"value": MISSING, "ends": ""}
    value, *ends = (float(shares[column].iloc[0]) for column in columns)
    return {"value": plain(value, 2), "ends": interval(ends[0], ends[1], 2) if ends else ""}

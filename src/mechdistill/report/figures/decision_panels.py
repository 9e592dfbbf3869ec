"""Panels of a figure, one a kind of decision and part of the trace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from mechdistill.figure_style import letter
from mechdistill.traces.decision_events import KINDS, SEGMENTS


def decision_panels(panels: Any, table: pd.DataFrame) -> Iterator[tuple[Axes, pd.DataFrame]]:
    """Each panel, with its heading, and the rows that it shows.

    Args:
        panels: axes, a row a segment and a column a kind; further rows are left alone.
        table: columns kind and segment.
    """
    places = product(enumerate(SEGMENTS), enumerate(KINDS))
    for sign, ((row, segment), (column, kind)) in zip("abcdef", places, strict=True):
        axes = panels[row][column]
        letter(axes, f"{sign}  {kind}, {segment}")
        yield axes, table[(table["segment"] == segment) & (table["kind"] == kind)]

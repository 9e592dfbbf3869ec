"""What a figure shows as a table, so that each point has a name and an unrounded value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd


class Point(NamedTuple):
    """A drawn point or bar with its interval.

    `panel`, `line` and `point` name it: letter and title, method or head or set of heads, place on
    the axis. `n_notes` is how many notes it is the mean of, None where the figure does not say.
    """

    panel: str
    line: str
    point: str
    value: float
    low: float
    high: float
    n_notes: int | None


def as_frame(points: Sequence[Point]) -> pd.DataFrame:
    """One row a point, in the order in which they are drawn."""
    return pd.DataFrame(points, columns=list(Point._fields))


def to_csv(points: pd.DataFrame) -> str:
    """The same as CSV, numbers unrounded."""
    text: str = points.astype({"n_notes": "Int64"}).to_csv(index=False, lineterminator="\n")
    return text

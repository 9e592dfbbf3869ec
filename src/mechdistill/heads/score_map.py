"""A value of every head as a map of layers and heads."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from mechdistill.figure_style import new_figure, style
from mechdistill.heads.cell_map import draw_cells, grid

NAMED = 3
"""Heads that are named in the map: those with the highest values."""


def draw_score_map(rows: pd.DataFrame, title: str) -> Figure:
    """One cell a head; the highest are named, a dot says that the interval excludes 0.

    Args:
        rows: layer, head, value, ci_low, ci_high, n; one a head.
        title: what the value is.
    """
    with style():
        layers, heads = int(rows["layer"].max()) + 1, int(rows["head"].max()) + 1
        figure = new_figure(*map_size(layers, heads))
        axes = figure.subplots()
        image = draw_map(axes, rows)
        figure.colorbar(image, ax=axes, label=title)
        examples = int(rows["n"].max())
        if examples > 1:
            axes.set_title(f"{title}, mean of {examples}\ndots: 95 % interval excludes 0")
        else:
            axes.set_title(title)
    return figure


def map_size(layers: int, heads: int) -> tuple[float, float]:
    """Inches of a map with its colour bar, cells of readable size where they are few."""
    return min(7.2, 1.8 + 0.32 * heads), min(8.0, 0.9 + 0.32 * layers)


def draw_map(axes: Axes, rows: pd.DataFrame, *, value: str = "value") -> AxesImage:
    """Layers upwards, heads to the right, colours symmetric about 0; no value: no colour.

    Args:
        axes: where to draw.
        rows: layer, head, `value`, and ci_low and ci_high.
        value: the column that is shown.
    """
    low, high = (grid(rows, column) for column in ("ci_low", "ci_high"))
    image = draw_cells(axes, rows, value, (low > 0) | (high < 0))
    highest = rows.dropna(subset=value).nlargest(NAMED, value)
    for layer, head in zip(highest["layer"].tolist(), highest["head"].tolist(), strict=True):
        axes.annotate(
            f"L{layer}H{head}", (head, layer), xytext=(0, 5), textcoords="offset points",
            ha="center", va="bottom", fontsize=6.5,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0, "alpha": 0.8},
        )  # fmt: skip
    return image

"""A value of every head as a map of layers and heads."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mechdistill.figure_style import BLACK, new_figure, style

COLOURS = "PuOr_r"
"""Diverging, and told apart under the common colour vision deficiencies."""
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
    low, high = (_grid(rows, column) for column in ("ci_low", "ci_high"))
    image = _draw(axes, rows, value, (low > 0) | (high < 0))
    highest = rows.dropna(subset=value).nlargest(NAMED, value)
    for layer, head in zip(highest["layer"].tolist(), highest["head"].tolist(), strict=True):
        axes.annotate(
            f"L{layer}H{head}", (head, layer), xytext=(0, 5), textcoords="offset points",
            ha="center", va="bottom", fontsize=6.5,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0, "alpha": 0.8},
        )  # fmt: skip
    return image


def draw_marked_map(axes: Axes, rows: pd.DataFrame, *, value: str, marked: str) -> AxesImage:
    """As `draw_map`, with dots where the column `marked` is true, and no names: for small maps."""
    return _draw(axes, rows, value, _grid(rows, marked) > 0)


def _grid(rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
    return rows.pivot(index="layer", columns="head", values=column).to_numpy(dtype=np.float64)


def _draw(axes: Axes, rows: pd.DataFrame, value: str, dots: NDArray[np.bool_]) -> AxesImage:
    shown = _grid(rows, value)
    finite = np.abs(shown[np.isfinite(shown)])
    reach = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    image = axes.imshow(shown, cmap=COLOURS, vmin=-reach, vmax=reach, origin="lower", aspect="auto")
    layers, heads = np.nonzero(dots)
    axes.scatter(heads, layers, s=4, color=BLACK, linewidths=0)
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return image

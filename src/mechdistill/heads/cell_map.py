"""A map of layers and heads: a coloured cell for each head, dots on some."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from mechdistill.figure_style import BLACK

COLOURS = "PuOr_r"
"""Diverging, and told apart under the common colour vision deficiencies."""


def draw_marked_map(axes: Axes, rows: pd.DataFrame, *, value: str, marked: str) -> AxesImage:
    """Cells coloured by the column `value`, with dots where the column `marked` is true."""
    return draw_cells(axes, rows, value, grid(rows, marked) > 0)


def grid(rows: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """The column as [layers, heads], of rows with layer and head."""
    return rows.pivot(index="layer", columns="head", values=column).to_numpy(dtype=np.float64)


def draw_cells(axes: Axes, rows: pd.DataFrame, value: str, dots: NDArray[np.bool_]) -> AxesImage:
    """Layers upwards, heads to the right, colours symmetric about 0; no value: no colour."""
    shown = grid(rows, value)
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

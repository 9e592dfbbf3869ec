"""One look for all figures: colour-blind safe colours, sizes in points, files without dates.

Figures are made without pyplot: no global state, no display, the same bytes on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mechdistill.artifacts import replacing

WIDTH = 7.2
"""Inches: a page's text width."""

# Okabe and Ito's palette: distinguishable under the common colour vision deficiencies
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,
    "svg.hashsalt": "mechdistill",
    "figure.dpi": 100,
}


@contextmanager
def style() -> Iterator[None]:
    """The settings above, for as long as the block runs."""
    with matplotlib.rc_context(_SETTINGS):
        yield


class ShownFigure(Figure):
    """A figure that a notebook shows as a cell's value, also where nobody has imported pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        with style():
            self.savefig(buffer, format="png", dpi=120, metadata={"Software": None})
        return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in inches, laid out so that nothing overlaps."""
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, pdf: str | Path, png: str | Path) -> None:
    """Write both files, without dates or program versions in them."""
    with style():
        with replacing(pdf) as temporary:
            no_date = {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None}
            figure.savefig(temporary, format="pdf", metadata=no_date)
        with replacing(png) as temporary:
            figure.savefig(temporary, format="png", dpi=200, metadata={"Software": None})


def letter(axes: Axes, text: str) -> None:
    """A panel's heading, flush left."""
    axes.set_title(text, loc="left", fontweight="bold")


def tell(axes: Axes, text: str) -> None:
    """Say in the middle of a panel why it is empty."""
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def light_grid(axes: Axes, axis: Literal["x", "y"] = "y") -> None:
    """Thin grid lines behind the data."""
    axes.grid(axis=axis, color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)

"""Figure 4: the heads by CoarseScore, and what a top head reads in a note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import nan

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.textpath import TextPath

from mechdistill.figure_style import BLUE, GREEN, VERMILION, WIDTH, letter, style
from mechdistill.report.attention import KINDS, AttendedTrace, Word
from mechdistill.report.figures.heads import (
    COMPACT,
    depth_legend,
    draw_ranking,
    ranked_scores,
    ranking_points,
)
from mechdistill.report.figures.points import Point
from mechdistill.report.rankings import name

EDGES = {"evidence": VERMILION, "cue": BLUE, "anchor": GREEN}
"""Role of a token -> colour of its frame."""
_HEIGHT = 4.8
_HEAT = LinearSegmentedColormap.from_list("heat", ["#FFFFFF", "#F7C873", "#E69F00"])
SIZES = (8.0, 7.5, 7.0, 6.5, 6.0)
"""Points: the largest size at which a note fits is taken."""
# in units of the letters' size
_LINE, _PAD, _GAP = 1.95, 0.25, 0.35
_LONGEST = 38  # characters of a label before it is cut; the page shows it whole


def figure4(head_scores: pd.DataFrame, trace: AttendedTrace | None, layers: int) -> Figure:
    """Left: ranking by CoarseScore. Right: the note's words, shaded by the head's attention.

    Without a trace, which restricted data do not give, the right says that no note is shown.
    """
    with style():
        # placed by hand: the words must know their panel's width before anything is drawn
        figure = Figure(figsize=(WIDTH, _HEIGHT))
        FigureCanvasAgg(figure)
        ranking = figure.add_axes((0.07, 0.17, 0.33, 0.76))
        draw_ranking(ranking, ranked_scores(head_scores, 1), 1, layers, "a")
        figure.legend(
            handles=depth_legend(), loc="lower left", ncols=3, bbox_to_anchor=(0.0, 0.0), **COMPACT
        )
        axes = figure.add_axes((0.44, 0.11, 0.55, 0.82))
        axes.axis("off")
        if trace is None:
            axes.text(0.5, 0.5, "no note is shown: restricted data", ha="center", va="center")
            return figure
        letter(axes, f"b  Attention of {name(trace.head)} at early queries, {trace.example}")
        box = axes.get_position()
        width, height = 72 * WIDTH * box.width, 72 * _HEIGHT * box.height
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        note = trace.note
        most = max(word.weight for word in note)
        for placed in fit([word.text for word in note], width, height):
            _draw_word(axes, placed, note[placed.index], most)
        figure.legend(
            handles=[
                *(Patch(facecolor="white", edgecolor=EDGES[k], label=KINDS[k]) for k in EDGES),
                Patch(facecolor=_HEAT(1.0), label=f"darkest: {100 * most:.0f} % of attention"),
            ],
            loc="lower right", ncols=2, frameon=False, bbox_to_anchor=(0.995, 0.0),
        )  # fmt: skip
    return figure


def points4(head_scores: pd.DataFrame, trace: AttendedTrace | None) -> list[Point]:
    """Every bar of the ranking, and the attention on every word, where the note may be shown."""
    points = ranking_points(ranked_scores(head_scores, 1))
    if trace is not None:
        panel = f"b {name(trace.head)} on {trace.example}"
        points += [
            Point(panel, f"word {place}", word.text, word.weight, nan, nan, None)
            for place, word in enumerate(trace.note, start=1)
        ]
    return points


@dataclass(frozen=True)
class Placed:
    """A word in a panel whose unit is the point, origin at the top left; y is its baseline."""

    index: int
    text: str
    x: float
    y: float
    width: float
    size: float


def fit(texts: Sequence[str], width: float, height: float) -> list[Placed]:
    """Words placed at the largest of `SIZES` at which they fit, at the smallest if none does."""
    for size in SIZES:
        placed = flow(texts, width, size)
        if placed[-1].y + 0.5 * size <= height:
            break
    return placed


def flow(texts: Sequence[str], width: float, size: float) -> list[Placed]:
    """Place words in lines of at most `width` points; over-long ones are cut with "…"."""
    placed: list[Placed] = []
    x, y = 0.0, _LINE * size
    for index, full in enumerate(texts):
        text = full if len(full) <= _LONGEST else full[: _LONGEST - 1].rstrip() + "…"
        # screens round each letter to whole pixels: 3 % wider than the outline
        letters = 1.03 * size * _width_at_one_point(text)
        extent = letters + 2 * _PAD * size
        if x > 0 and x + extent > width:
            x, y = 0.0, y + _LINE * size
        placed.append(Placed(index, text, x, y, extent, size))
        x += extent + _GAP * size
    return placed


@lru_cache(maxsize=4096)
def _width_at_one_point(text: str) -> float:
    """Width of a word's outline; outlines scale with the size."""
    return float(TextPath((0, 0), text, size=100).get_extents().width) / 100


def _draw_word(axes: Axes, placed: Placed, word: Word, most: float) -> None:
    size = placed.size
    axes.add_patch(
        Rectangle(
            (placed.x, placed.y - 1.05 * size),
            placed.width,
            1.5 * size,
            facecolor=_HEAT(word.weight / most if most > 0 else 0.0),
            edgecolor=EDGES.get(word.kind, "none"),
            linewidth=0.9,
        )
    )
    axes.text(placed.x + _PAD * size, placed.y, placed.text, fontsize=size, va="baseline")

"""Figure 4: the heads by CoarseScore, and what a top head reads in a note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.textpath import TextPath

from mechdistill.report.attention import KINDS, AttendedNote, Word
from mechdistill.report.figures.heads import COMPACT, depth_legend, draw_ranking, ranked_scores
from mechdistill.report.figures.style import (
    BLUE,
    GREEN,
    VERMILION,
    WIDTH,
    letter,
    style,
)
from mechdistill.report.rankings import name

EDGES = {"evidence": VERMILION, "cue": BLUE, "anchor": GREEN}
"""Role of a token -> colour of its frame."""
_HEIGHT = 4.8
_HEAT = LinearSegmentedColormap.from_list("heat", ["#FFFFFF", "#F7C873", "#E69F00"])
# points
_SIZE, _LINE, _PAD, _GAP = 6.4, 12.5, 1.6, 2.2
_LONGEST = 34  # characters of a label before it is cut; the page shows it whole


def figure4(head_scores: pd.DataFrame, note: AttendedNote, layers: int) -> Figure:
    """Left: ranking by CoarseScore. Right: the note's words, shaded by the head's attention."""
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
        letter(axes, f"b  Attention of {name(note.head)} at early queries, {note.example}")
        axes.axis("off")
        box = axes.get_position()
        width, height = 72 * WIDTH * box.width, 72 * _HEIGHT * box.height
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        most = max(word.weight for word in note.words)
        for placed in flow([word.text for word in note.words], width):
            _draw_word(axes, placed, note.words[placed.index], most)
        figure.legend(
            handles=[
                *(Patch(facecolor="white", edgecolor=EDGES[k], label=KINDS[k]) for k in EDGES),
                Patch(facecolor=_HEAT(1.0), label=f"darkest: {100 * most:.0f} % of attention"),
            ],
            loc="lower right", ncols=2, frameon=False, bbox_to_anchor=(0.995, 0.0),
        )  # fmt: skip
    return figure


@dataclass(frozen=True)
class Placed:
    """A word in a panel whose unit is the point, origin at the top left."""

    index: int
    text: str
    x: float
    y: float
    width: float


def flow(texts: Sequence[str], width: float) -> list[Placed]:
    """Place words in lines of at most `width` points; over-long ones are cut with "…"."""
    placed: list[Placed] = []
    x, y = 0.0, _LINE
    for index, full in enumerate(texts):
        text = full if len(full) <= _LONGEST else full[: _LONGEST - 1].rstrip() + "…"
        # screens round each letter to whole pixels: 3 % wider than the outline
        extent = 1.03 * TextPath((0, 0), text, size=_SIZE).get_extents().width + 2 * _PAD
        if x > 0 and x + extent > width:
            x, y = 0.0, y + _LINE
        placed.append(Placed(index, text, x, y, extent))
        x += extent + _GAP
    return placed


def _draw_word(axes: Axes, placed: Placed, word: Word, most: float) -> None:
    edge = EDGES.get(word.kind)
    axes.add_patch(
        Rectangle(
            (placed.x, placed.y - 0.76 * _LINE), placed.width, 0.84 * _LINE,
            facecolor=_HEAT(word.weight / most if most > 0 else 0.0),
            edgecolor=edge or "none", linewidth=0.9,
        )
    )  # fmt: skip
    axes.text(placed.x + _PAD, placed.y - 2.9, placed.text, fontsize=_SIZE, va="baseline")

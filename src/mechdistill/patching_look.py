"""How patching is drawn: what the figures of a study and those of a notebook have in common."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from mechdistill.figure_style import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, VERMILION

SITES = {"pattern": "attention patterns", "output": "head outputs"}
"""Site -> name, in the order of the panels."""
STARTS = {"denoise": ("corrupted", VERMILION), "noise": ("clean", GREEN)}
"""Direction -> the run that is patched and its colour, in the order of the panels."""
RANKINGS = {
    "top": (BLUE, "", "o", "top-ranked"),
    "random": (GREY, "", "s", "random (mean of draws)"),
    "depth_matched": (SKY, "////", "^", "random, same layers as top"),
    "lowest": (ORANGE, "....", "v", "lowest-ranked"),
    "all": (BLACK, "", "D", "all heads of the model"),
}
"""Ranking -> colour, hatch, marker, name."""
BINNED = tuple(ranking for ranking in RANKINGS if ranking != "all")
"""Rankings of which growing sets of heads are patched."""


def heading(direction: str, site: str) -> str:
    """What a panel is of: "Denoise head outputs"."""
    return f"{direction.capitalize()} {SITES[site]}"


def draw_levels(axes: Axes, rows: pd.DataFrame) -> None:
    """Lines at the means of the clean and the corrupted run, unpatched."""
    axes.axhline(float(rows["clean"].mean()), color=GREEN, linewidth=0.9, linestyle="--")
    axes.axhline(float(rows["corrupted"].mean()), color=VERMILION, linewidth=0.9, linestyle=":")

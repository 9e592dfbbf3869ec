"""Figure 13: what heads attend to at the decisions that they count for."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import BLACK, BLUE, WIDTH, light_grid, new_figure, style, tell
from mechdistill.report.event_attention import PLACES
from mechdistill.report.figures.decision_panels import decision_panels
from mechdistill.report.figures.points import Point
from mechdistill.traces.decision_events import KINDS, SEGMENTS

AT = {
    "at the decisions": ("mass", "ci_low", "ci_high", "n"),
    "at matched tokens": ("other", "other_low", "other_high", "n_other"),
}
"""What is drawn -> its columns: value, interval, notes."""
EVEN = "evenly spread"


def figure13(shares: pd.DataFrame) -> Figure:
    """A panel a kind and segment: attention mass by place.

    Args:
        shares: of `mechdistill.report.event_attention.attention_shares`.
    """
    with style():
        figure = new_figure(WIDTH, 5.4)
        panels = figure.subplots(len(SEGMENTS), len(KINDS), sharex=True, sharey=True, squeeze=False)
        for axes, own in decision_panels(panels, shares):
            _panel(axes, own)
        panels[0][0].set_yticks(range(len(PLACES)), list(PLACES.values()))
        panels[0][0].invert_yaxis()
        for axes in panels[-1]:
            axes.set_xlabel("attention mass")
        figure.legend(handles=_legend(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def points13(shares: pd.DataFrame) -> list[Point]:
    """Every point of the figure."""
    found = []
    for row in shares.to_dict("records"):
        panel, place = f"{row['kind']}, {row['segment']}", PLACES[row["place"]]
        found += [
            Point(panel, line, place, *(row[column] for column in columns))
            for line, columns in AT.items()
        ]
        nothing = float("nan")
        found.append(Point(panel, EVEN, place, row["uniform"], nothing, nothing, row["n"]))
    return found


def _panel(axes: Axes, shares: pd.DataFrame) -> None:
    if shares.empty:
        tell(axes, "no head counts")
        return
    at = [list(PLACES).index(place) for place in shares["place"]]
    for offset, columns in zip((-0.15, 0.15), AT.values(), strict=True):
        value, low, high, _ = columns
        height = [y + offset for y in at]
        fill = BLUE if value == "mass" else "white"
        axes.plot(
            shares[value], height, color=BLUE, marker="o", markersize=4, markerfacecolor=fill,
            linestyle="", zorder=3,
        )  # fmt: skip
        axes.hlines(height, shares[low], shares[high], color=BLUE, linewidth=0.9)
    axes.plot(shares["uniform"], at, color=BLACK, marker="|", markersize=9, linestyle="")
    light_grid(axes, "x")


def _legend() -> list[Line2D]:
    look = {"linestyle": "", "markersize": 4}
    return [
        *(
            Line2D([], [], color=BLUE, marker="o", mfc=fill, label=label, **look)  # type: ignore[arg-type]
            for label, fill in zip(AT, (BLUE, "white"), strict=True)
        ),
        Line2D([], [], color=BLACK, marker="|", linestyle="", markersize=9, label=EVEN),
    ]

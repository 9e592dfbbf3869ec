"""Figure 12: how far growing sets of a donor's heads carry its decision into another context."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import BLACK, WIDTH, letter, light_grid, new_figure, style
from mechdistill.patching_look import BINNED, RANKINGS
from mechdistill.report.decisions import SEGMENTS
from mechdistill.report.figures.points import Point
from mechdistill.traces.decision_events import KINDS

NULL = "notes that decide alike"


def figure12(shares: pd.DataFrame) -> Figure:
    """A panel a kind and segment: share of the full distance over the number of heads.

    Args:
        shares: of `mechdistill.report.knock_in.knock_in_shares`.
    """
    with style():
        figure = new_figure(WIDTH, 4.8)
        panels = figure.subplots(len(SEGMENTS), len(KINDS), sharey=True, squeeze=False)
        for row, segment in enumerate(SEGMENTS):
            for column, kind in enumerate(KINDS):
                axes = panels[row][column]
                own = shares[(shares["segment"] == segment) & (shares["kind"] == kind)]
                _curves(axes, own)
                letter(axes, f"{'abcdef'[row * len(KINDS) + column]}  {kind}, {segment}")
                light_grid(axes)
            panels[row][0].set_ylabel("share of all heads' effect")
        for axes in panels[-1]:
            axes.set_xlabel("heads")
        figure.legend(handles=_legend(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def points12(shares: pd.DataFrame) -> list[Point]:
    """Every point of the figure."""
    return [
        Point(
            f"{row['kind']}, {row['segment']}",
            f"{row['ranking']}, {NULL}" if row["null"] else row["ranking"],
            f"{row['bin']} heads",
            *(row["share"], row["ci_low"], row["ci_high"], row["n"]),
        )
        for row in _drawn(shares).to_dict("records")
    ]


def _drawn(shares: pd.DataFrame) -> pd.DataFrame:
    """All rankings of donors, and the first heads of the null."""
    return shares[
        shares["ranking"].isin(BINNED) & (shares["null"].eq("") | shares["ranking"].eq("top"))
    ]


def _curves(axes: Axes, shares: pd.DataFrame) -> None:
    drawn = _drawn(shares)
    if not drawn["share"].notna().any():
        axes.text(0.5, 0.5, "not read", ha="center", va="center", transform=axes.transAxes)
        axes.set_xticks([])
        return
    for (ranking, null), own in drawn.groupby(["ranking", "null"], sort=False):
        colour, _, marker, _ = RANKINGS[str(ranking)]
        own = own.sort_values("bin")
        line = "--" if null else "-"
        axes.plot(
            own["bin"], own["share"], color=colour, marker=marker, markersize=3, linestyle=line
        )
        axes.vlines(own["bin"], own["ci_low"], own["ci_high"], color=colour, linewidth=0.7)
    axes.axhline(1, color=BLACK, linewidth=0.6, linestyle=":")
    bins = sorted(drawn["bin"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(bins, [str(size) for size in bins])
    axes.minorticks_off()


def _legend() -> list[Line2D]:
    named = [
        Line2D([], [], color=colour, marker=marker, markersize=3, label=name)
        for colour, _, marker, name in (RANKINGS[ranking] for ranking in BINNED)
    ]
    colour, _, marker, name = RANKINGS["top"]
    label = f"{name}, {NULL}"
    return [
        *named,
        Line2D([], [], color=colour, marker=marker, markersize=3, linestyle="--", label=label),
    ]

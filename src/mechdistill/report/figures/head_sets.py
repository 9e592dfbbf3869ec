"""Figure 11: what growing sets of heads take away from decisions, and what they give alone."""

from __future__ import annotations

from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import BLACK, WIDTH, letter, light_grid, new_figure, style
from mechdistill.patching_look import BINNED, RANKINGS
from mechdistill.report.decisions import SEGMENTS
from mechdistill.report.figures.points import Point
from mechdistill.traces.decision_events import KINDS

LINES: dict[str, Literal["-", "--"]] = {"ablated": "-", "kept": "--"}
"""Mode -> line."""


def figure11(shares: pd.DataFrame) -> Figure:
    """A panel a kind and segment: share of all heads' effect over the number of heads.

    Args:
        shares: of `mechdistill.report.head_sets.set_shares`.
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


def points11(shares: pd.DataFrame) -> list[Point]:
    """Every point of the figure."""
    return [
        Point(
            f"{row['kind']}, {row['segment']}",
            f"{row['ranking']} {row['mode']}",
            f"{row['bin']} heads",
            *(row["share"], row["ci_low"], row["ci_high"], row["n"]),
        )
        for row in shares[shares["ranking"].isin(BINNED)].to_dict("records")
    ]


def _curves(axes: Axes, shares: pd.DataFrame) -> None:
    if not shares["share"].notna().any():
        axes.text(0.5, 0.5, "not read", ha="center", va="center", transform=axes.transAxes)
        axes.set_xticks([])
        return
    for ranking in BINNED:
        colour, _, marker, _ = RANKINGS[ranking]
        for mode, line in LINES.items():
            own = shares[(shares["ranking"] == ranking) & (shares["mode"] == mode)]
            own = own.sort_values("bin")
            axes.plot(
                own["bin"], own["share"], color=colour, marker=marker, markersize=3, linestyle=line
            )
            axes.vlines(own["bin"], own["ci_low"], own["ci_high"], color=colour, linewidth=0.7)
    axes.axhline(1, color=BLACK, linewidth=0.6, linestyle=":")
    bins = sorted(shares["bin"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(bins, [str(size) for size in bins])
    axes.minorticks_off()


def _legend() -> list[Line2D]:
    rankings = [RANKINGS[ranking] for ranking in BINNED]
    return [
        *(
            Line2D([], [], color=colour, marker=marker, markersize=3, label=name)
            for colour, _, marker, name in rankings
        ),
        *(
            Line2D([], [], color=BLACK, linestyle=line, label=f"the set {mode}")
            for mode, line in LINES.items()
        ),
    ]

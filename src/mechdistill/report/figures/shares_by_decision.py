"""Shares over numbers of heads, a panel a kind of decision and part of the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import BLACK, WIDTH, light_grid, new_figure, style, tell
from mechdistill.patching_look import RANKINGS
from mechdistill.report.figures.decision_panels import decision_panels
from mechdistill.traces.decision_events import KINDS, SEGMENTS


def share_panels(
    shares: pd.DataFrame,
    curves: Callable[[Axes, pd.DataFrame], None],
    legend: Callable[[], Sequence[Line2D]],
) -> Figure:
    """All panels.

    Args:
        shares: columns kind, segment, bin, share, and what `curves` reads.
        curves: draws the curves of a panel's rows, some of which have a share.
    """
    with style():
        figure = new_figure(WIDTH, 4.8)
        panels = figure.subplots(len(SEGMENTS), len(KINDS), sharey=True, squeeze=False)
        for axes, own in decision_panels(panels, shares):
            _panel(axes, own, curves)
            light_grid(axes)
        for axes in panels[:, 0]:
            axes.set_ylabel("share of all heads' effect")
        for axes in panels[-1]:
            axes.set_xlabel("heads")
        figure.legend(
            handles=legend(), loc="outside lower center", ncols=3, frameon=False, handlelength=4
        )
    return figure


def share_curve(axes: Axes, rows: pd.DataFrame, ranking: str, line: str) -> None:
    """Shares of one ranking's sets with their intervals, in its look."""
    colour, _, marker, _ = RANKINGS[ranking]
    rows = rows.sort_values("bin")
    axes.plot(rows["bin"], rows["share"], color=colour, marker=marker, markersize=3, linestyle=line)
    axes.vlines(rows["bin"], rows["ci_low"], rows["ci_high"], color=colour, linewidth=0.7)


def _panel(axes: Axes, shares: pd.DataFrame, curves: Callable[[Axes, pd.DataFrame], None]) -> None:
    if not shares["share"].notna().any():
        tell(axes, "not read")
        axes.set_xticks([])
        return
    curves(axes, shares)
    axes.axhline(1, color=BLACK, linewidth=0.6, linestyle=":")
    bins = sorted(shares["bin"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(bins, [str(size) for size in bins])
    axes.minorticks_off()

"""What patching did: maps of single heads, curves over sets of growing size."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import (
    GREEN,
    VERMILION,
    WIDTH,
    letter,
    light_grid,
    new_figure,
    style,
)
from mechdistill.heads.score_map import draw_map, map_size
from mechdistill.patching_look import BINNED, RANKINGS, SITES, STARTS, draw_levels, heading


def draw_single_heads(summary: pd.DataFrame) -> Figure:
    """A map a site and direction: how far each head moves the margin towards the claim.

    Args:
        summary: of `mechdistill.patching.prompt_sweep.PatchSweep`, single heads.
    """
    width, height = map_size(int(summary["layer"].max()) + 1, int(summary["head"].max()) + 1)
    with style():
        figure = new_figure(max(WIDTH / 2, 2 * width), 2 * height)
        panels = figure.subplots(len(SITES), len(STARTS), squeeze=False)
        for row, site in enumerate(SITES):
            for column, direction in enumerate(STARTS):
                axes = panels[row][column]
                chosen = summary[_where(summary, site, direction)].copy()
                towards = 1 if direction == "denoise" else -1
                ends = chosen[["ci_low", "ci_high"]].to_numpy() * towards
                chosen["ci_low"], chosen["ci_high"] = ends.min(axis=1), ends.max(axis=1)
                image = draw_map(axes, chosen, value="effect")
                done = "restored" if direction == "denoise" else "lost"
                figure.colorbar(image, ax=axes, label=f"margin {done} (logits)")
                letter(axes, heading(direction, site))
    return figure


def draw_sets(summary: pd.DataFrame) -> Figure:
    """Mean margin over the number of heads, a panel a site and direction.

    Args:
        summary: of `mechdistill.patching.prompt_sweep.PatchSweep`, sets of heads.
    """
    with style():
        figure = new_figure(WIDTH, 4.6)
        panels = figure.subplots(len(SITES), len(STARTS), sharex=True, sharey=True, squeeze=False)
        for row, site in enumerate(SITES):
            for column, direction in enumerate(STARTS):
                axes = panels[row][column]
                _curves(axes, summary[_where(summary, site, direction)], direction)
                letter(axes, heading(direction, site))
                light_grid(axes)
            panels[row][0].set_ylabel("margin (logits)")
        for axes in panels[-1]:
            axes.set_xlabel("heads patched")
        figure.legend(handles=_legend(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _where(summary: pd.DataFrame, site: str, direction: str) -> pd.Series:
    return (summary["site"] == site) & (summary["direction"] == direction)


def _curves(axes: Axes, rows: pd.DataFrame, direction: str) -> None:
    start = rows[STARTS[direction][0]]
    for ranking in BINNED:
        own = rows[rows["ranking"] == ranking].sort_values("bin")
        colour, _, marker, _ = RANKINGS[ranking]
        axes.plot(own["bin"], own["patched"], color=colour, marker=marker, markersize=3.5)
        base = start[own.index]
        low, high = base + own["ci_low"], base + own["ci_high"]
        axes.vlines(own["bin"], low, high, color=colour, linewidth=0.9)
    whole = rows[rows["ranking"] == "all"]
    colour, _, marker, _ = RANKINGS["all"]
    axes.plot(whole["bin"], whole["patched"], color=colour, marker=marker, linestyle="")
    draw_levels(axes, rows)
    bins = sorted(rows["bin"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(bins, [str(size) for size in bins])
    axes.minorticks_off()


def _legend() -> list[Line2D]:
    def line(ranking: str, **look: object) -> Line2D:
        colour, _, marker, name = RANKINGS[ranking]
        return Line2D([], [], color=colour, marker=marker, markersize=3.5, label=name, **look)  # type: ignore[arg-type]

    return [
        *(line(ranking) for ranking in BINNED),
        line("all", linestyle=""),
        Line2D([], [], color=GREEN, linewidth=0.9, linestyle="--", label="clean, unpatched"),
        Line2D([], [], color=VERMILION, linewidth=0.9, linestyle=":", label="corrupted, unpatched"),
    ]

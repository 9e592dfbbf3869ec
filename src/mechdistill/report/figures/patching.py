"""Figures 5 and 8: denoising and noising growing sets of heads.

Twelve panels: the paper's measure on the generated reasoning, what that reasoning decides, and the
teacher-forced margin, each at both sites; denoising left, noising right.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import nan
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mechdistill.errors import InputError
from mechdistill.figure_style import (
    BLACK,
    GREEN,
    VERMILION,
    WIDTH,
    letter,
    light_grid,
    new_figure,
    style,
    tell,
)
from mechdistill.patching_look import BINNED, RANKINGS, SITES, STARTS, draw_levels, heading
from mechdistill.report.figures.points import Point
from mechdistill.report.formats import percent
from mechdistill.report.patching import PAPER_METRIC, TWIN, WRITTEN

UNITS = {
    "focus": "Focus (cosine)",
    "confusion": "Confusion (cosine)",
    "region_recall": "true regions named\n(share)",
    "near_miss_rate": "near-misses kept\n(share)",
    "margin": "margin (logits)",
}


def patching_figure(summary: pd.DataFrame, phase: int) -> Figure:
    """Bars of one phase: the unpatched run, then top, random, depth-matched and lowest heads.

    Args:
        summary: rows (phase, twin, site, direction, ranking, bin, metric, clean, corrupted,
            patched, ci_low, ci_high, pct_gap, pct_paper, n); intervals are of the difference from
            the unpatched run.
        phase: 1 (Figure 5) or 2 (Figure 8).

    Raises:
        InputError: the phase was not patched at all.
    """
    drawn = _panels(summary, phase)
    height = len(drawn) // len(STARTS)
    with style():
        figure = new_figure(WIDTH, 2.05 * height + 0.5)
        axes = figure.subplots(height, len(STARTS), sharey="row", squeeze=False)
        for place, panel in zip(axes.flat, drawn, strict=True):
            _draw(place, panel.rows, panel.metric, panel.direction)
            where = "teacher-forced" if panel.metric == "margin" else "generated"
            letter(place, f"{panel.letter}  {heading(panel.direction, panel.site)} ({where})")
        for row, panel in zip(axes, drawn[:: len(STARTS)], strict=True):
            row[0].set_ylabel(UNITS[panel.metric])
        figure.legend(
            handles=_legend(), loc="outside lower center", ncols=4, frameon=False, handlelength=1.6
        )
    return figure


def points(summary: pd.DataFrame, phase: int) -> pd.DataFrame:
    """Every bar of the figure: the unpatched run of each panel, then the patched ones.

    Returns:
        columns of `Point`, and pct_gap and pct_paper of each patched run.
    """
    found: list[tuple[Any, ...]] = []
    for panel in _panels(summary, phase):
        name = f"{panel.letter} {panel.direction} {panel.site} {panel.metric}"
        start, _ = STARTS[panel.direction]
        rows = panel.rows[panel.rows["ranking"].isin([*BINNED, "all"])]
        if len(panel.rows):
            base = float(panel.rows[start].mean())
            found.append((*Point(name, "unpatched", start, base, nan, nan, None), nan, nan))
        for row in rows.to_dict("records"):
            heads = "all" if row["ranking"] == "all" else f"{int(row['bin'])}"
            ends = (row[start] + row["ci_low"], row[start] + row["ci_high"])
            point = Point(
                name, row["ranking"], f"{heads} heads", row["patched"], *ends, int(row["n"])
            )
            found.append((*point, row["pct_gap"], row["pct_paper"]))
    return pd.DataFrame(found, columns=[*Point._fields, "pct_gap", "pct_paper"])


@dataclass(frozen=True)
class _Panel:
    letter: str
    metric: str
    site: str
    direction: str
    rows: pd.DataFrame


def _panels(summary: pd.DataFrame, phase: int) -> list[_Panel]:
    """The panels from left to right and from top to bottom, with the rows that they show."""
    own = summary[(summary["phase"] == phase) & (summary["twin"] == TWIN[phase])]
    read = [m for m in (PAPER_METRIC[phase], WRITTEN[phase], "margin") if m in set(own["metric"])]
    if not read:
        raise InputError(
            f"the patching summary holds no run of phase {phase}",
            "make it again: snakemake --cores 2 -R summarise_patching",
        )
    shown = product(read, SITES, STARTS)
    return [
        _Panel(
            letter,
            *(metric, site, direction),
            own[
                (own["metric"] == metric) & (own["site"] == site) & (own["direction"] == direction)
            ],
        )
        for letter, (metric, site, direction) in zip("abcdefghijkl", shown)
    ]


def _draw(axes: Axes, rows: pd.DataFrame, metric: str, direction: str) -> None:
    if rows.empty:
        tell(axes, "not run")
        axes.set_xticks([])
        return
    start, colour = STARTS[direction]
    bins = sorted(int(k) for k in rows.loc[rows["ranking"] == "top", "bin"].unique())
    places = {k: float(i) for i, k in enumerate(bins, start=1)}
    axes.bar(0, float(rows[start].mean()), width=0.7, color=colour)
    width = 0.8 / len(BINNED)
    for number, ranking in enumerate(BINNED):
        shift = (number - (len(BINNED) - 1) / 2) * width
        chosen = rows[(rows["ranking"] == ranking) & rows["bin"].isin(bins)]
        _bars(axes, chosen, [places[int(k)] + shift for k in chosen["bin"]], ranking, width, start)
    whole = rows[rows["ranking"] == "all"]
    _bars(axes, whole, [len(bins) + 1.0] * len(whole), "all", 2 * width, start)
    draw_levels(axes, rows)
    if metric == "margin":
        axes.axhline(0, color=BLACK, linewidth=0.6)
    _ticks(axes, rows, places, start)
    light_grid(axes)


def _bars(
    axes: Axes, rows: pd.DataFrame, x: list[float], ranking: str, width: float, start: str
) -> None:
    """Mean of the patched runs, with the interval of the difference from the unpatched run."""
    colour, hatch, _, _ = RANKINGS[ranking]
    fill = "white" if hatch else colour
    axes.bar(
        x, rows["patched"], width=width, color=fill, edgecolor=colour, hatch=hatch, linewidth=0.6
    )
    base = rows[start]
    axes.vlines(
        x, base + rows["ci_low"], base + rows["ci_high"], color="#444444", linewidth=0.9, zorder=3
    )


def _ticks(axes: Axes, rows: pd.DataFrame, places: dict[int, float], start: str) -> None:
    """Under each bin: number of heads, then both percentages of the top-ranked heads."""
    labels = {0.0: f"{start}\npct_gap\npct_paper"}
    for row in rows[rows["ranking"].isin(["top", "all"])].to_dict("records"):
        whole = row["ranking"] == "all"
        x = len(places) + 1.0 if whole else places[int(row["bin"])]
        count = "all" if whole else int(row["bin"])
        labels[x] = f"{count}\n{percent(row['pct_gap'])}\n{percent(row['pct_paper'])}"
    axes.set_xticks(sorted(labels), [labels[x] for x in sorted(labels)])
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(places) + 1.6)


def _legend() -> list[Patch | Line2D]:
    sets = [
        Patch(facecolor="white" if hatch else colour, edgecolor=colour, hatch=hatch, label=name)
        for colour, hatch, _, name in RANKINGS.values()
    ]
    return [
        *sets,
        Patch(color=VERMILION, label="corrupted, unpatched"),
        Patch(color=GREEN, label="clean, unpatched"),
        Line2D([], [], color="#444444", linewidth=0.9, label="95 % interval over notes"),
    ]

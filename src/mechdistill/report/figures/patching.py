"""Figures 5 and 8: denoising and noising growing sets of heads.

Twelve panels: the paper's measure on the generated reasoning, what that reasoning decides, and the
teacher-forced margin, each at both sites; denoising left, noising right.
"""

from __future__ import annotations

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
)
from mechdistill.patching_look import BINNED, RANKINGS, SITES, STARTS, draw_levels, heading
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
    own = summary[(summary["phase"] == phase) & (summary["twin"] == TWIN[phase])]
    read = [m for m in (PAPER_METRIC[phase], WRITTEN[phase], "margin") if m in set(own["metric"])]
    if not read:
        raise InputError(
            f"the patching summary holds no run of phase {phase}",
            "make it again: snakemake --cores 2 -R summarise_patching",
        )
    rows = [(metric, site) for metric in read for site in SITES]
    with style():
        figure = new_figure(WIDTH, 2.05 * len(rows) + 0.5)
        panels = figure.subplots(len(rows), 2, sharey="row", squeeze=False)
        for r, (metric, site) in enumerate(rows):
            for c, direction in enumerate(STARTS):
                chosen = own[
                    (own["metric"] == metric)
                    & (own["site"] == site)
                    & (own["direction"] == direction)
                ]
                _panel(panels[r][c], chosen, metric, direction)
                where = "teacher-forced" if metric == "margin" else "generated"
                letter(
                    panels[r][c],
                    f"{'abcdefghijkl'[2 * r + c]}  {heading(direction, site)} ({where})",
                )
            panels[r][0].set_ylabel(UNITS[metric])
        figure.legend(
            handles=_legend(), loc="outside lower center", ncols=4, frameon=False, handlelength=1.6
        )
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, metric: str, direction: str) -> None:
    if rows.empty:
        axes.text(0.5, 0.5, "not run", ha="center", va="center", transform=axes.transAxes)
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

"""Figure 1: Focus and Confusion along the reasoning, teacher and students."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.report.evidence import NotTested
from mechdistill.report.figures.style import METHODS, WIDTH, letter, light_grid, new_figure, style
from mechdistill.report.metrics import method_name
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.trajectories import SPLIT, as_grid, shared_examples, trajectories

METRICS = {"focus": "reasoning Focus (cosine)", "confusion": "near-miss Confusion (cosine)"}
KINDS = {
    "cumulative": "cumulative mean",
    "windowed": "mean in each bin of t",
}


def curve_bands(
    curves: pd.DataFrame, method: str, metric: str, kind: str, boot: Bootstrap
) -> pd.DataFrame:
    """Mean and 95 % interval at each t: columns t, mean, low, high, n (notes).

    Raises:
        NotTested: the method has no such curve.
    """
    frame = trajectories(curves, method, metric, kind)
    rows = []
    for t in frame.columns:
        values = frame[t].dropna()
        if values.empty:
            continue
        found = boot.grid(as_grid(values, shared_examples(values)), "cosine")
        rows.append((float(t), found.effect, found.low, found.high, found.n))
    return pd.DataFrame(rows, columns=["t", "mean", "low", "high", "n"])


def figure1(curves: pd.DataFrame, methods: tuple[str, ...], boot: Bootstrap) -> Figure:
    """Columns: the two metrics; rows: the cumulative and the windowed reading.

    Args:
        curves: rows (method, seed, example, kind, metric, t, value).
        methods: lines to draw, in the order of the legend; those without curves are left out.
        boot: for the bands.
    """
    with style():
        figure = new_figure(WIDTH, 5.0)
        panels = figure.subplots(2, 2, sharex=True, sharey="col")
        drawn: dict[str, Line2D] = {}
        for row, kind in enumerate(KINDS):
            for column, metric in enumerate(METRICS):
                axes = panels[row][column]
                for method in methods:
                    try:
                        band = curve_bands(curves, method, metric, kind, boot)
                    except NotTested:
                        continue
                    drawn[method] = _line(axes, band, method)
                _furnish(axes, metric, kind, "abcd"[2 * row + column])
        for column in (0, 1):
            panels[1][column].set_xlabel(
                "position t in the reasoning (t* = 0.5: refinement starts)"
            )
        figure.legend(
            list(drawn.values()),
            [method_name(method) for method in drawn],
            loc="outside lower center",
            ncols=3,
            frameon=False,
            handlelength=3.2,
        )
    return figure


def _line(axes: Axes, band: pd.DataFrame, method: str) -> Line2D:
    colour, dashes, marker = METHODS.get(method, METHODS["vanilla_positions"])
    axes.fill_between(band["t"], band["low"], band["high"], color=colour, alpha=0.15, linewidth=0)
    every = max(1, len(band) // 5)
    (line,) = axes.plot(
        band["t"], band["mean"], color=colour, linestyle=dashes, marker=marker or None,
        markevery=every, markersize=3.5,
    )  # fmt: skip
    return line


def _furnish(axes: Axes, metric: str, kind: str, panel: str) -> None:
    letter(axes, f"{panel}  {metric.capitalize()}, {KINDS[kind]}")
    axes.axvspan(0, SPLIT, color="#F2F2F2", linewidth=0, zorder=0)
    axes.axvline(SPLIT, color="#777777", linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 1)
    axes.set_ylabel(METRICS[metric])
    light_grid(axes)

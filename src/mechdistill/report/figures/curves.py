"""Figure 1: Focus and Confusion along the reasoning, teacher and students."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import WIDTH, letter, light_grid, new_figure, style
from mechdistill.report.evidence import NotTested
from mechdistill.report.figures.points import Point
from mechdistill.report.figures.style import Look, looks
from mechdistill.report.metrics import method_name
from mechdistill.report.resampling import Bootstrap
from mechdistill.report.trajectories import SPLIT, as_grid, shared_examples, trajectories

METRICS = {"focus": "reasoning Focus (cosine)", "confusion": "near-miss Confusion (cosine)"}
KINDS = {
    "cumulative": "cumulative mean",
    "windowed": "mean in each bin of t",
}
Bands = Mapping[tuple[str, str, str], pd.DataFrame]
"""Kind, metric and method -> of `curve_bands`."""


class Band(NamedTuple):
    """A row of `curve_bands`."""

    t: float
    mean: float
    low: float
    high: float
    n: int


def curve_bands(
    curves: pd.DataFrame, method: str, metric: str, kind: str, boot: Bootstrap
) -> pd.DataFrame:
    """Mean and 95 % interval at each t: columns t, mean, low, high, n (notes with a value).

    Where fewer than half of the notes have a value there is no mean: a few long traces would
    stand for all.

    Raises:
        NotTested: the method has no such curve.
    """
    frame = trajectories(curves, method, metric, kind)
    same = curves[(curves["metric"] == metric) & (curves["kind"] == kind)]
    frame = frame.reindex(columns=sorted(same["t"].unique()))  # a t that others reach is a gap here
    notes = len(frame.index.unique("example"))
    rows: list[tuple[float, ...]] = []
    for t in frame.columns.to_numpy(float):
        values = frame[t].dropna()
        examples = shared_examples(values)
        if len(examples) < notes / 2:
            rows.append((t, np.nan, np.nan, np.nan, len(examples)))
            continue
        found = boot.grid(as_grid(values, examples), "cosine")
        rows.append((t, found.effect, found.low, found.high, found.n))
    return pd.DataFrame(rows, columns=list(Band._fields))


def all_bands(curves: pd.DataFrame, methods: tuple[str, ...], boot: Bootstrap) -> Bands:
    """The bands of every panel and method, without methods that have no curve there.

    Args:
        curves: rows (method, seed, example, kind, metric, t, value).
        methods: lines to draw, in the order of the legend.
        boot: for the intervals.
    """
    found = {}
    for kind, metric, method in product(KINDS, METRICS, methods):
        with suppress(NotTested):
            found[kind, metric, method] = curve_bands(curves, method, metric, kind, boot)
    return found


def points1(bands: Bands) -> list[Point]:
    """Every point of Figure 1."""
    panels = dict(zip(product(KINDS, METRICS), "abcd", strict=True))
    return [
        Point(
            f"{panels[kind, metric]} {metric}, {kind}",
            method,
            f"t {row.t:g}",
            *(row.mean, row.low, row.high, row.n),
        )
        for (kind, metric, method), band in bands.items()
        for row in map(Band._make, band.itertuples(index=False))
    ]


def figure1(bands: Bands, methods: tuple[str, ...]) -> Figure:
    """Columns: the two metrics; rows: the cumulative and the windowed reading.

    Args:
        bands: of `all_bands`.
        methods: the same.
    """
    with style():
        figure = new_figure(WIDTH, 5.0)
        panels = figure.subplots(2, 2, sharex=True)
        drawn: dict[str, Line2D] = {}
        drawn_as = looks(methods)
        for row, kind in enumerate(KINDS):
            for column, metric in enumerate(METRICS):
                axes = panels[row][column]
                for number, method in enumerate(methods):
                    if (kind, metric, method) in bands:
                        band = bands[kind, metric, method]
                        drawn[method] = _line(axes, band, drawn_as[method], number)
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


def _line(axes: Axes, band: pd.DataFrame, look: Look, number: int) -> Line2D:
    """Markers of the methods stand at different t, so that none hides another's."""
    colour, dashes, marker = look
    axes.fill_between(band["t"], band["low"], band["high"], color=colour, alpha=0.12, linewidth=0)
    every = max(1, len(band) // 5)
    (line,) = axes.plot(
        band["t"], band["mean"], color=colour, linestyle=dashes, marker=marker or None,
        markevery=(number % every, every), markersize=3.5,
    )  # fmt: skip
    return line


def _furnish(axes: Axes, metric: str, kind: str, panel: str) -> None:
    letter(axes, f"{panel}  {metric.capitalize()}, {KINDS[kind]}")
    axes.axvspan(0, SPLIT, color="#F2F2F2", linewidth=0, zorder=0)
    axes.axvline(SPLIT, color="#777777", linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 1)
    axes.set_ylabel(METRICS[metric])
    light_grid(axes)

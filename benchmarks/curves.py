"""Plots of the benchmarks: cost against size with fitted powers, and ratios with their targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from benchmarks.scaling import Power, fit_power
from mechdistill.figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    WIDTH,
    letter,
    light_grid,
    new_figure,
    style,
)

EXTRA = "beside the pass"
"""What `rows` costs more than `plain`."""
LOOKS = {
    "plain": (BLACK, "o"),
    "rows": (BLUE, "s"),
    EXTRA: (GREY, "x"),
    "every variant": (SKY, "^"),
    "eager": (VERMILION, "D"),
    "nnsight": (ORANGE, "v"),
    "TransformerLens": (PURPLE, "P"),
    "TransformerLens, sliced": (GREEN, "X"),
    "sweep": (BLUE, "s"),
    "a pass each": (VERMILION, "D"),
    "TransformerLens, patching": (PURPLE, "P"),
    "vanilla": (BLACK, "o"),
    "mech": (BLUE, "s"),
}
"""Way -> colour and marker: never told apart by colour alone."""
PANELS = (
    ("row scoring", "tokens", "seconds"),
    ("row scoring", "tokens", "peak_mib"),
    ("patching sweep", "tokens", "seconds"),
    ("training step", "tokens", "seconds"),
    ("row scoring", "heads", "seconds"),
    ("row scoring", "examples", "seconds"),
    ("patching sweep", "conditions", "seconds"),
)
LABELS = {"seconds": "CPU seconds", "peak_mib": "peak memory, MiB"}
LEAST_MIB = 1.0
"""Peaks below are the allocator's."""


@dataclass(frozen=True)
class Curve:
    """One way along one axis.

    Args:
        memory: None where a peak is too small to tell.
    """

    benchmark: str
    axis: str
    way: str
    sizes: list[int]
    time: Power
    memory: Power | None


def with_extra(ways: pd.DataFrame) -> pd.DataFrame:
    """The measured ways, and what `rows` costs beside the pass that it taps, where that is more."""
    measured = ways[ways["absent"] == ""]
    keys = ["benchmark", "axis", "value", "model"]
    rows, plain = (measured[measured["way"] == name].set_index(keys) for name in ("rows", "plain"))
    of = ["seconds", "peak_mib"]
    extra = (rows[of] - plain[of]).dropna().reset_index()
    extra = extra[extra["seconds"] > 0].assign(way=EXTRA, absent="", turns=1)
    return pd.concat([measured, extra], ignore_index=True)


def fitted(ways: pd.DataFrame) -> Iterator[Curve]:
    """Of every way that was measured at two sizes at least."""
    measured = with_extra(ways)
    for (benchmark, axis, way), of in measured.groupby(["benchmark", "axis", "way"], sort=False):
        sizes = of["value"].tolist()
        if len(set(sizes)) < 2:
            continue
        peaks = of["peak_mib"].tolist()
        memory = fit_power(sizes, peaks) if min(peaks) > LEAST_MIB else None
        yield Curve(benchmark, axis, way, sizes, fit_power(sizes, of["seconds"]), memory)


def draw_curves(ways: pd.DataFrame, folder: Path) -> list[str]:
    """One panel a benchmark and axis; names of the files that were written."""
    measured = with_extra(ways)
    panels = [
        (panel, found) for panel in PANELS if len(found := _of(measured, panel).value.unique()) > 1
    ]
    if not panels:
        return []
    rows = (len(panels) + 1) // 2
    with style():
        figure = new_figure(WIDTH, 2.4 * rows)
        axes = figure.subplots(rows, 2, squeeze=False).flatten()
        for place, (panel, sizes) in zip(axes, panels):
            _panel(place, _of(measured, panel), panel, sorted(int(size) for size in sizes))
        for place in axes[len(panels) :]:
            place.set_axis_off()
        return [_save(figure, folder, "curves.svg")]


def draw_ratios(table: pd.DataFrame, folder: Path) -> list[str]:
    """Ratios that have a target, their quartiles, and the target."""
    rows = table[table["time_target"].notna() & (table["absent"] == "")].to_dict("records")
    if not rows:
        return []
    with style():
        figure = new_figure(WIDTH, 0.6 + 0.22 * len(rows))
        axes = figure.subplots()
        for place, row in enumerate(reversed(rows)):
            low, high = row["time"] - row["time_q1"], row["time_q3"] - row["time"]
            axes.errorbar(
                row["time"], place, xerr=[[low], [high]], fmt="o", color=BLUE, capsize=2, ms=4
            )
            axes.plot(row["time_target"], place, "|", color=VERMILION, ms=12, mew=2)
        names = [
            f"{r['benchmark']}, {r['value']} {r['axis']}: {r['way']}, {r['kind']}: {r['against']}"
            for r in reversed(rows)
        ]
        axes.set_yticks(range(len(rows)), names)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.set_xlabel("ratio of CPU times (dot: median, whiskers: quartiles; bar: target)")
        light_grid(axes, "x")
        return [_save(figure, folder, "ratios.svg")]


def _of(measured: pd.DataFrame, panel: tuple[str, str, str]) -> pd.DataFrame:
    benchmark, axis, quantity = panel
    of = measured[(measured["benchmark"] == benchmark) & (measured["axis"] == axis)]
    return of[of[quantity] > 0]


def _panel(axes: Axes, of: pd.DataFrame, panel: tuple[str, str, str], sizes: list[int]) -> None:
    benchmark, axis, quantity = panel
    for way, points in of.groupby("way", sort=False):
        color, marker = LOOKS.get(str(way), (BLACK, "."))
        x, y = points["value"].to_numpy(float), points[quantity].to_numpy(float)
        label = str(way)
        if len(x) > 1:
            power = fit_power(x, y)
            label += f": {power.exponent:.2f}"
            axes.plot(np.sort(x), power.at(np.sort(x)), color=color, lw=0.8, ls="--")
        axes.plot(x, y, marker, color=color, ms=4, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_xlabel(axis)
    axes.set_ylabel(LABELS[quantity])
    low, high = of[quantity].min(), of[quantity].max()
    middle = np.sqrt(low * high)  # at least a decade: noise is not to look like growth
    crowded = of["way"].nunique() > 4
    axes.set_ylim(min(low / 1.5, middle / 3), max(high * (200 if crowded else 3), middle * 3))
    axes.legend(
        title="way: fitted exponent",
        loc="upper left",
        ncols=2 if crowded else 1,
        frameon=False,
        fontsize=6,
        title_fontsize=6,
    )
    light_grid(axes)
    letter(axes, benchmark)


def _save(figure: Figure, folder: Path, name: str) -> str:
    figure.savefig(folder / name, format="svg", metadata={"Date": None, "Creator": None})
    return name

"""Figure 14: the region some tokens before it is decided, by probes and by single heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import BLACK, GREY, WIDTH, letter, light_grid, new_figure, style, tell
from mechdistill.report.figures.points import Point, as_frame
from mechdistill.report.figures.style import DEPTHS, depth_group
from mechdistill.report.rankings import name

PROBED, HEADS = "a  region read by a probe", "b  heads ablated"
MARKERS = ("o", "s", "^")
"""By third of the layers, as the colours."""
EMBEDDING: dict[str, Any] = {"color": BLACK, "linestyle": "--"}


def figure14(probe: pd.DataFrame, effects: pd.DataFrame) -> Figure:
    """Left: accuracy of the probes of each layer; right: margin lost by each head ablated.

    Both over the tokens before the decision.

    Args:
        probe: of `mechdistill.patching.region_probe.probe_regions`.
        effects: of `mechdistill.patching.eliciting_heads.effects_before`.
    """
    with style():
        figure = new_figure(WIDTH, 3.4)
        left, right = figure.subplots(1, 2)
        for axes, title, table, draw in (
            (left, PROBED, probe, _probes),
            (right, HEADS, effects, _heads),
        ):
            letter(axes, title)
            if table.empty:
                tell(axes, "not read")
                axes.set_xticks([])
                axes.set_yticks([])
                continue
            draw(axes, table)
            axes.set_xlabel("tokens before the decision")
            light_grid(axes)
        figure.legend(
            handles=_legend(), loc="outside lower center", ncols=4, frameon=False, handlelength=4
        )
    return figure


def points14(probe: pd.DataFrame, effects: pd.DataFrame) -> pd.DataFrame:
    """Every point of the figure.

    Returns:
        columns of `Point`, and above_null: whether a head exceeds its nulls (empty for probes).
    """
    read = [
        Point(
            PROBED,
            f"layer {row['layer']}",
            _place(row["offset"]),
            *(row["accuracy"], row["ci_low"], row["ci_high"], row["notes"]),
        )
        for row in probe.to_dict("records")
    ]
    read += [
        Point(PROBED, control, _place(row["offset"]), row[column], np.nan, np.nan, row["notes"])
        for row in _controls(probe).to_dict("records")
        for control, column in (("most frequent region", "majority"), ("shuffled", "shuffled"))
    ]
    ablated = [
        Point(
            HEADS,
            name((row["layer"], row["head"])),
            _place(row["offset"]),
            *(row["effect"], row["ci_low"], row["ci_high"], row["n"]),
        )
        for row in effects.to_dict("records")
    ]
    above = [*[None] * len(read), *effects["above_null"].astype(bool)]
    return as_frame([*read, *ablated]).assign(above_null=pd.Series(above, dtype="boolean"))


def _place(offset: int) -> str:
    return f"{offset} before"


def _controls(probe: pd.DataFrame) -> pd.DataFrame:
    """By offset: what the most frequent region gives, and the best probe of shuffled labels."""
    by_offset = probe.groupby("offset", sort=True)
    return by_offset.agg(
        majority=("majority", "first"), shuffled=("shuffled", "max"), notes=("notes", "first")
    ).reset_index()


def _probes(axes: Axes, probe: pd.DataFrame) -> None:
    layers = int(probe["layer"].max())
    for layer in range(layers + 1):
        own = probe[probe["layer"] == layer].sort_values("offset")
        look = _look(layer - 1, layers) if layer else EMBEDDING
        axes.plot(own["offset"], own["accuracy"], markersize=3.5, **look)
        ends = own["ci_low"], own["ci_high"]
        axes.vlines(own["offset"], *ends, color=look["color"], linewidth=0.7)
    controls = _controls(probe)
    for column in ("majority", "shuffled"):
        axes.plot(controls["offset"], controls[column], color=GREY, linestyle=":", linewidth=1)
    axes.set_xticks(sorted(probe["offset"].unique()))
    axes.invert_xaxis()
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("accuracy")


def _heads(axes: Axes, effects: pd.DataFrame) -> None:
    layers = int(effects["layer"].max()) + 1
    offsets = sorted(effects["offset"].unique())
    for place, offset in enumerate(offsets):
        own = effects[effects["offset"] == offset].sort_values(["layer", "head"])
        counting = own["above_null"].astype(bool)
        x = place - np.linspace(-0.35, 0.35, len(own))
        axes.vlines(x, own["ci_low"], own["ci_high"], color=GREY, linewidth=0.5)
        for layer in range(layers):
            look = _look(layer, layers)
            for above, fill in ((False, "white"), (True, look["color"])):
                at = ((own["layer"] == layer) & (counting == above)).to_numpy()
                axes.scatter(
                    x[at], own["effect"][at], s=12, marker=look["marker"], facecolor=fill,
                    edgecolor=look["color"], linewidth=0.8, zorder=3,
                )  # fmt: skip
    axes.axhline(0, color=BLACK, linewidth=0.6)
    axes.set_xticks(range(len(offsets)), [str(offset) for offset in offsets])
    axes.invert_xaxis()
    axes.set_ylabel("margin lost (logits)")


def _look(layer: int, layers: int) -> dict[str, Any]:
    group = depth_group(layer, layers)
    return {"color": DEPTHS[group][0], "marker": MARKERS[group]}


def _legend() -> list[Line2D]:
    filled = {"color": BLACK, "linestyle": "", "marker": "o", "markersize": 4}
    return [
        *(
            Line2D([], [], color=colour, marker=marker, markersize=4, label=text)
            for (colour, text), marker in zip(DEPTHS, MARKERS, strict=True)
        ),
        Line2D([], [], label="embedding", **EMBEDDING),
        Line2D([], [], color=GREY, linestyle=":", label="controls"),
        Line2D([], [], label="exceeds its nulls", **filled),  # type: ignore[arg-type]
        Line2D([], [], mfc="white", label="within its nulls", **filled),  # type: ignore[arg-type]
    ]

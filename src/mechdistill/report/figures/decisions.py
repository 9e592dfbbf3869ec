"""Figure 10: what single heads do for each kind of decision, and how attribution ranks them."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import (
    BLACK,
    BLUE,
    ORANGE,
    WIDTH,
    letter,
    light_grid,
    new_figure,
    style,
    tell,
)
from mechdistill.heads.cell_map import draw_marked_map
from mechdistill.report.figures.decision_panels import decision_panels
from mechdistill.report.figures.points import Point, as_frame
from mechdistill.report.rankings import name
from mechdistill.traces.decision_events import KINDS, SEGMENTS

COLOURS = {"reasoning": (BLUE, "o"), "answer": (ORANGE, "s")}


def figure10(effects: pd.DataFrame) -> Figure:
    """Maps of each head's effect beyond its nulls; below, exact effects over attribution.

    Args:
        effects: of `mechdistill.patching.calibration.calibrate`.
    """
    with style():
        figure = new_figure(WIDTH, 6.6)
        panels = figure.subplots(len(SEGMENTS) + 1, len(KINDS), squeeze=False)
        for axes, rows in decision_panels(panels, effects):
            if rows.empty:
                _nothing(axes)
            else:
                image = draw_marked_map(axes, rows, value="excess", marked="above_null")
                figure.colorbar(image, ax=axes, label="beyond null (logits)")
        for sign, axes, kind in zip("ghi", panels[-1], KINDS, strict=True):
            letter(axes, f"{sign}  {kind}")
            _attribution(axes, effects[effects["kind"] == kind])
        figure.legend(handles=_legend(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def points10(effects: pd.DataFrame) -> pd.DataFrame:
    """Every head of the figure.

    Returns:
        columns of `Point` (the exact effect), and excess and attribution.
    """
    found = [
        Point(
            f"{row['kind']}, {row['segment']}",
            "",
            name((row["layer"], row["head"])),
            *(row["effect"], row["ci_low"], row["ci_high"], row["n"]),
        )
        for row in effects.to_dict("records")
    ]
    more = {column: effects[column].to_numpy() for column in ("excess", "attribution")}
    return as_frame(found).assign(**more)


def _attribution(axes: Axes, rows: pd.DataFrame) -> None:
    if rows.empty:
        return _nothing(axes)
    for segment, (colour, marker) in COLOURS.items():
        own = rows[rows["segment"] == segment]
        for above, fill in ((False, "white"), (True, colour)):
            chosen = own[own["above_null"].astype(bool) == above]
            axes.scatter(
                chosen["attribution"], chosen["effect"], s=14, marker=marker, facecolor=fill,
                edgecolor=colour, linewidth=0.8, zorder=3,
            )  # fmt: skip
        axes.vlines(own["attribution"], own["ci_low"], own["ci_high"], color=colour, linewidth=0.7)
    axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.6, linestyle=":")
    axes.set_xlabel("attribution (logits)")
    axes.set_ylabel("exact effect (logits)")
    light_grid(axes)
    return None


def _nothing(axes: Axes) -> None:
    tell(axes, "no such decision")
    axes.set_xticks([])
    axes.set_yticks([])


def _legend() -> list[Line2D]:
    look = {"linestyle": "", "markersize": 4}
    return [
        *(
            Line2D([], [], color=colour, marker=marker, label=segment, **look)  # type: ignore[arg-type]
            for segment, (colour, marker) in COLOURS.items()
        ),
        Line2D([], [], color=BLACK, marker="o", mfc="white", label="within its null", **look),  # type: ignore[arg-type]
        Line2D([], [], color=BLACK, linewidth=0.6, linestyle=":", label="attribution = effect"),
    ]

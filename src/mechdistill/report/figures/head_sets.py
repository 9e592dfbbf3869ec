"""Figure 11: what growing sets of heads take away from decisions, and what they give alone."""

from __future__ import annotations

from typing import Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.figure_style import BLACK
from mechdistill.patching_look import BINNED, RANKINGS
from mechdistill.report.figures.points import Point
from mechdistill.report.figures.shares_by_decision import share_curve, share_panels

LINES: dict[str, Literal["-", "--"]] = {"ablated": "-", "kept": "--"}
"""Mode -> line."""


def figure11(shares: pd.DataFrame) -> Figure:
    """A panel a kind and segment: share of all heads' effect over the number of heads.

    Args:
        shares: of `mechdistill.report.head_sets.set_shares`.
    """
    return share_panels(shares, _curves, _legend)


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
    for ranking in BINNED:
        for mode, line in LINES.items():
            own = shares[(shares["ranking"] == ranking) & (shares["mode"] == mode)]
            share_curve(axes, own, ranking, line)


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

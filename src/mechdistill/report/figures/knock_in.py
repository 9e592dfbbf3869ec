"""Figure 12: how far growing sets of a donor's heads carry its decision into another context."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mechdistill.patching_look import BINNED, RANKINGS
from mechdistill.report.figures.points import Point
from mechdistill.report.figures.shares_by_decision import share_curve, share_panels

NULL = "notes that decide alike"


def figure12(shares: pd.DataFrame) -> Figure:
    """A panel a kind and segment: share of the full distance over the number of heads.

    Args:
        shares: of `mechdistill.report.knock_in.knock_in_shares`.
    """
    return share_panels(_drawn(shares), _curves, _legend)


def points12(shares: pd.DataFrame) -> list[Point]:
    """Every point of the figure."""
    return [
        Point(
            f"{row['kind']}, {row['segment']}",
            f"{row['ranking']}, {NULL}" if row["null"] else row["ranking"],
            f"{row['bin']} heads",
            *(row["share"], row["ci_low"], row["ci_high"], row["n"]),
        )
        for row in _drawn(shares).to_dict("records")
    ]


def _drawn(shares: pd.DataFrame) -> pd.DataFrame:
    """All rankings of donors, and the first heads of the null."""
    return shares[
        shares["ranking"].isin(BINNED) & (shares["null"].eq("") | shares["ranking"].eq("top"))
    ]


def _curves(axes: Axes, shares: pd.DataFrame) -> None:
    for (ranking, null), own in shares.groupby(["ranking", "null"], sort=False):
        share_curve(axes, own, str(ranking), "--" if null else "-")


def _legend() -> list[Line2D]:
    named = [
        Line2D([], [], color=colour, marker=marker, markersize=3, label=name)
        for colour, _, marker, name in (RANKINGS[ranking] for ranking in BINNED)
    ]
    colour, _, marker, name = RANKINGS["top"]
    label = f"{name}, {NULL}"
    return [
        *named,
        Line2D([], [], color=colour, marker=marker, markersize=3, linestyle="--", label=label),
    ]

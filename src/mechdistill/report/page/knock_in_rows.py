"""Rows of the page's table of decisions that are carried into another note's context."""

from __future__ import annotations

import pandas as pd

from mechdistill.report.formats import MISSING, interval, percent, plain
from mechdistill.report.page.rows import Row


def knock_in_rows(shares: pd.DataFrame, pairs: pd.DataFrame) -> list[Row]:
    """By kind of decision and number of heads; one row without numbers where no pair was read.

    Args:
        shares: of `mechdistill.report.knock_in.knock_in_shares`.
        pairs: notes, recipients and pairs of each kind and segment.
    """
    rows: list[Row] = []
    for count in pairs.to_dict("records"):
        counts: Row = {name: count[name] for name in ("kind", "segment", "notes")}
        counts |= {"n": count["recipients"], "pairs": count["pairs"]}
        own = shares[(shares["kind"] == count["kind"]) & (shares["segment"] == count["segment"])]
        top = own[(own["ranking"] == "top") & (own["null"] == "")]
        rows += [counts | _cells(row, own) for row in top.to_dict("records")]
        if top.empty:
            rows.append(counts | _cells(None, own))
    return rows


def _cells(row: Row | None, shares: pd.DataFrame) -> Row:
    if row is None:
        names = ("bin", "distance", "share", "random", "null", "carried", "carried_all")
        return dict.fromkeys(names, MISSING) | {"ends": "", "carried_ends": ""}
    same = shares[shares["bin"] == row["bin"]]
    return {
        "bin": row["bin"],
        "distance": plain(row["distance"], 2),
        "share": percent(100 * row["share"]),
        "ends": interval(100 * row["ci_low"], 100 * row["ci_high"], 0),
        "random": _share(same, "random", ""),
        "null": _share(same, "top", "same_way"),
        "carried": percent(100 * row["carried"]),
        "carried_ends": interval(100 * row["carried_low"], 100 * row["carried_high"], 0),
        "carried_all": percent(100 * row["carried_all"]),
    }


def _share(shares: pd.DataFrame, ranking: str, null: str) -> str:
    own = shares[(shares["ranking"] == ranking) & (shares["null"] == null)]
    return percent(100 * own["share"].iloc[0]) if len(own) else MISSING

"""Sets of heads at decisions: how much they take away, how much they give, on how many notes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from mechdistill.heads.overlap import heads_above_null, shared_by_chance
from mechdistill.heads.resampling import Floats, interval, plain_and_resampled, weighted_means
from mechdistill.report.resampling import Bootstrap
from mechdistill.traces.decision_events import KINDS

COLUMNS = (
    *("kind", "segment", "mode", "ranking", "bin", "draw", "example", "margin", "floor"),
    "patched",
)
SHARES = ("kind", "segment", "mode", "ranking", "bin", "n", "share", "ci_low", "ci_high", "notes")


def set_shares(sets: pd.DataFrame, boot: Bootstrap) -> pd.DataFrame:
    """Share of what all heads do for the margin that a set takes away, or gives alone.

    Ablated: (margin - patched) / (margin - floor); kept: (patched - floor) / (margin - floor);
    ratios of means over notes. No share unless the interval of margin - floor lies above 0.

    Args:
        sets: of `mechdistill.patching.head_sets.ablate_sets`; draws are averaged within a note.

    Returns:
        kind, segment, mode, ranking, bin, n (notes), share with ci_low and ci_high, and of the top
        heads: notes (share of notes on which they do more than random heads of the same number).
    """
    cell = ["kind", "segment", "mode", "ranking", "bin"]
    each = sets.groupby([*cell, "example"], sort=False)[["margin", "floor", "patched"]].mean()
    each = each.reset_index()
    taken, given = each["margin"] - each["patched"], each["patched"] - each["floor"]
    each["done"] = np.where(each["mode"] == "ablated", taken, given)
    each["whole"] = each["margin"] - each["floor"]
    cells = {key: rows.set_index("example") for key, rows in each.groupby(cell, sort=False)}
    records = []
    for (kind, segment, mode, ranking, size), rows in cells.items():
        counts = plain_and_resampled(len(rows), boot.resamples, boot.seed)
        share, low, high = share_of_whole(
            weighted_means(rows[["done", "whole"]].to_numpy(float), counts)
        )
        random = cells.get((kind, segment, mode, "random", size))
        more = np.nan
        if ranking == "top" and random is not None:
            more = float((rows["done"] > random["done"].reindex(rows.index)).mean())
        key = dict(zip(cell, (kind, segment, mode, ranking, size), strict=True))
        ends = {"ci_low": low, "ci_high": high}
        records.append(key | {"n": len(rows), "share": share} | ends | {"notes": more})
    return pd.DataFrame.from_records(records, columns=list(SHARES))


def largest_sets(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """Those of `rows` with the largest `bin` of at most `most` heads; none where all are larger."""
    few = rows[rows["bin"] <= most]
    largest: pd.DataFrame = few[few["bin"] == few["bin"].max()]
    return largest


def share_of_whole(means: Floats) -> tuple[float, float, float]:
    """A ratio of means [1 + resamples, 2], the plain ones first: what is done over the whole.

    Returns:
        share and its 95 % interval; NaN unless that of the whole lies above 0.
    """
    done, whole = means.T
    low, _ = interval(whole[1:, None])
    if not low[0] > 0:
        return np.nan, np.nan, np.nan
    share = np.divide(done, whole, out=np.full_like(done, np.nan), where=whole > 0)
    ends = interval(share[1:, None])
    return float(share[0]), float(ends[0][0]), float(ends[1][0])


def overlaps(effects: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Heads that count at two kinds of decision of the same segment, against chance.

    Args:
        effects: of `mechdistill.patching.calibration.calibrate`.

    Yields:
        segment, first, second, heads of either, shared, expected (if both were drawn from all
        heads), p (two-sided, hypergeometric: twice the smaller tail).
    """
    for segment, rows in effects.groupby("segment", sort=False):
        found = {
            kind: heads_above_null(rows[rows["kind"] == kind])
            for kind in KINDS
            if (rows["kind"] == kind).any()
        }
        every = len(rows[["layer", "head"]].drop_duplicates())
        for one, other in combinations(found, 2):
            yield {
                **{"segment": segment, "first": one, "second": other},
                **{"n_first": len(found[one]), "n_second": len(found[other])},
                **shared_by_chance(found[one], found[other], every),
            }

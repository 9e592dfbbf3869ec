"""Decisions carried into another note's context: how far sets of heads carry them."""

from __future__ import annotations

import pandas as pd

from mechdistill.heads.resampling import interval, plain_and_resampled, weighted_means
from mechdistill.report.head_sets import share_of_whole
from mechdistill.report.resampling import Bootstrap

COLUMNS = (
    *("kind", "segment", "null", "ranking", "bin", "draw", "example", "donor", "start", "end"),
    *("donor_margin", "patched", "carried", "carried_all"),
)
PAIRS = ("kind", "segment", "notes", "recipients", "pairs", "recipients_with_null")
SHARES = (
    *("kind", "segment", "null", "ranking", "bin", "n", "distance", "donor_distance", "share"),
    *("ci_low", "ci_high", "share_of_donor", "carried", "carried_low", "carried_high"),
    "carried_all",
)


def knock_in_shares(rows: pd.DataFrame, boot: Bootstrap) -> pd.DataFrame:
    """How far the margin between a donor's token and the recipient's moves, and how often it tips.

    Share: (patched - start) / (end - start), a ratio of means over recipients, whose pairs and
    draws are averaged first. No share unless the interval of end - start lies above 0.

    Args:
        rows: of `mechdistill.patching.knock_in_sweep.knock_in_sets`.

    Returns:
        kind, segment, null, ranking, bin, n (recipients), distance (end - start, in logits),
        donor_distance (donor_margin - start), share with ci_low and ci_high, share_of_donor
        (patched - start over donor_distance), carried with its interval (share of recipients' pairs
        in which the donor's token comes first), carried_all (the same under all heads).
    """
    cell = ["kind", "segment", "null", "ranking", "bin"]
    made = rows.assign(
        done=rows["patched"] - rows["start"],
        whole=rows["end"] - rows["start"],
        to_donor=rows["donor_margin"] - rows["start"],
    )
    values = ["done", "whole", "to_donor", "carried", "carried_all"]
    made[values] = made[values].astype(float)
    each = made.groupby([*cell, "example"], sort=False)[values].mean().reset_index()
    records = []
    for key, own in each.groupby(cell, sort=False):
        counts = plain_and_resampled(len(own), boot.resamples, boot.seed)
        means = weighted_means(own[values].to_numpy(float), counts)
        share, low, high = share_of_whole(means[:, :2])
        of_donor, _, _ = share_of_whole(means[:, [0, 2]])
        ends = interval(means[1:, 3:4])
        numbers = (
            *(len(own), means[0, 1], means[0, 2], share, low, high, of_donor),
            *(means[0, 3], float(ends[0][0]), float(ends[1][0]), means[0, 4]),
        )
        records.append((*key, *numbers))
    return pd.DataFrame.from_records(records, columns=list(SHARES))

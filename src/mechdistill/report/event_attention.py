"""What heads that count at decisions attend to there, place by place."""

from __future__ import annotations

import pandas as pd

from mechdistill.report.resampling import Bootstrap

COLUMNS = ("kind", "segment", "null", "place", "layer", "head", "example", "mass", "uniform")
SHARES = (
    *("kind", "segment", "place", "heads", "n", "mass", "ci_low", "ci_high"),
    *("n_other", "other", "other_low", "other_high", "uniform"),
)
PLACES = {
    "chosen_region": "chosen region's lines",
    "other_regions": "other regions' lines",
    "evidence": "chosen region's findings",
    "other_evidence": "others' findings",
    "note": "rest before the list",
    "near_miss": "near-miss, earlier",
    "sinks": "sinks",
    "prompt": "rest of the prompt",
    "reasoning": "rest of the trace",
}
"""Places in the order in which they are shown, in words."""


def attention_shares(rows: pd.DataFrame, boot: Bootstrap) -> pd.DataFrame:
    """Attention mass of each place at decisions and at tokens matched to them.

    Means over the heads of a family that count, then over notes; 95 % intervals over notes.

    Args:
        rows: of `mechdistill.patching.event_attention.attend_at_events`.

    Returns:
        kind, segment, place, heads (that count), n (notes), mass with ci_low and ci_high, n_other
        (notes with a matched token), other (the mass there) with its interval, uniform (mass that
        attention evenly spread over the visible tokens has at the decisions).
    """
    records = []
    for family, own in rows.groupby(["kind", "segment"], sort=False):
        heads = len(own[["layer", "head"]].drop_duplicates())
        for place in PLACES:
            here = own[own["place"] == place]
            if here.empty:
                continue
            each = here.groupby(["null", "example"])[["mass", "uniform"]].mean()
            found = [
                boot.mean(each["mass"].xs(null) if null in each.index else each["mass"][:0], "")
                for null in ("", "other_token")
            ]
            numbers = [(e.n, e.effect, e.low, e.high) for e in found]
            even = float(each["uniform"].xs("").mean())
            records.append((*family, place, heads, *numbers[0], *numbers[1], even))
    return pd.DataFrame.from_records(records, columns=list(SHARES))

"""Shares of sets of heads, and overlaps of kinds, by hand and against SciPy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mechdistill.report.head_sets import COLUMNS, overlaps, set_shares
from mechdistill.report.resampling import Bootstrap

BOOT = Bootstrap(50, 0)


def rows(ranking, patched, *, mode="ablated", draws=1):
    """Notes a to d: all heads together take the margin from 10 to 2."""
    return [
        ("region", "reasoning", mode, ranking, 2, draw, note, 10.0, 2.0, value)
        for draw in range(draws)
        for note, value in zip("abcd", patched)
    ]


def shares(*made):
    frame = pd.DataFrame([row for part in made for row in part], columns=list(COLUMNS))
    return set_shares(frame, BOOT).set_index(["mode", "ranking"])


def test_shares_are_of_what_all_heads_do() -> None:
    found = shares(
        rows("top", [4.0, 4.0, 6.0, 10.0]),
        rows("random", [9.0, 9.0, 9.0, 9.0], draws=3),
        rows("top", [8.0, 8.0, 8.0, 0.0], mode="kept"),
        rows("random", [2.0, 3.0, 3.0, 4.0], mode="kept"),
    )
    assert found.loc[("ablated", "top"), "share"] == pytest.approx((6 + 6 + 4 + 0) / 4 / 8)
    assert found.loc[("ablated", "random"), "share"] == pytest.approx(1 / 8)
    assert found.loc[("kept", "top"), "share"] == pytest.approx((6 * 3 - 2) / 4 / 8)
    top = found.loc[("ablated", "top")]
    assert top["ci_low"] < top["share"] < top["ci_high"] and top["n"] == 4
    assert top["notes"] == 0.75 and found.loc[("kept", "top"), "notes"] == 0.75
    assert np.isnan(found.loc[("ablated", "random"), "notes"])


def test_no_share_where_all_heads_do_nothing() -> None:
    frame = pd.DataFrame(rows("top", [9.0] * 4), columns=list(COLUMNS)).assign(floor=10.0)
    assert set_shares(frame, BOOT)["share"].isna().all()


def test_overlaps_are_hypergeometric() -> None:
    heads = [(layer, head) for layer in range(5) for head in range(4)]
    counted = {"region": heads[:6], "within": heads[4:9], "departure": []}
    effects = pd.DataFrame(
        [
            (kind, "reasoning", *head, head in own)
            for kind, own in counted.items()
            for head in heads
        ],
        columns=["kind", "segment", "layer", "head", "above_null"],
    )
    found = {(row["first"], row["second"]): row for row in overlaps(effects)}
    assert len(found) == 3
    row = found["region", "within"]
    assert (row["n_first"], row["n_second"], row["shared"]) == (6, 5, 2)
    assert row["expected"] == pytest.approx(6 * 5 / 20)
    tails = stats.hypergeom(20, 6, 5).cdf(2), stats.hypergeom(20, 6, 5).sf(1)
    assert row["p"] == pytest.approx(min(1.0, 2 * min(tails)))
    assert found["region", "departure"]["p"] == 1.0

"""Shares of the way to a donor's decision, by hand."""

import numpy as np
import pandas as pd
import pytest

from mechdistill.report.knock_in import COLUMNS, SHARES, knock_in_shares
from mechdistill.report.resampling import Bootstrap

BOOT = Bootstrap(50, 0)


def shares(*rows):
    made = [("within", "reasoning", null, "top", 2, draw, *rest) for null, draw, *rest in rows]
    return knock_in_shares(pd.DataFrame(made, columns=list(COLUMNS)), BOOT)


def test_pairs_of_a_recipient_and_draws_are_averaged_before_recipients() -> None:
    found = shares(
        ("", 0, "a", "b", -4.0, 4.0, 6.0, 0.0, True, True),  # 4 of 8
        ("", 0, "a", "c", -4.0, 4.0, 6.0, -4.0, False, True),  # 0 of 8
        ("", 0, "b", "a", -2.0, 2.0, 8.0, 2.0, True, True),  # 4 of 4
        ("same_way", 0, "a", "b", -4.0, 4.0, 6.0, -3.0, False, True),
    ).set_index("null")
    own = found.loc[""]
    assert tuple(found.reset_index())[:1] == ("null",) and own["n"] == 2
    assert own["share"] == pytest.approx((2 + 4) / (8 + 4))
    assert own["share_of_donor"] == pytest.approx((2 + 4) / (10 + 10))
    assert (own["distance"], own["donor_distance"]) == (6.0, 10.0)
    assert own["carried"] == 0.75 and own["carried_all"] == 1.0
    assert own["ci_low"] <= own["share"] <= own["ci_high"]
    assert found.loc["same_way", "share"] == pytest.approx(1 / 8)


def test_no_share_where_all_heads_do_not_move_the_margin() -> None:
    found = shares(("", 0, "a", "b", -4.0, -5.0, 6.0, 0.0, False, False))
    assert np.isnan(found["share"].iloc[0]) and found["carried"].iloc[0] == 0.0


def test_without_pairs_there_are_no_shares() -> None:
    empty = shares()
    assert empty.empty and tuple(empty) == SHARES

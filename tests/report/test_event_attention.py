"""Attention at decisions by place, by hand."""

import numpy as np
import pandas as pd
import pytest

from mechdistill.heads import event_places
from mechdistill.report.event_attention import COLUMNS, PLACES, SHARES, attention_shares
from mechdistill.report.resampling import Bootstrap

BOOT = Bootstrap(50, 0)


def shares(*rows):
    made = [("departure", "answer", null, place, 0, *rest) for null, place, *rest in rows]
    return attention_shares(pd.DataFrame(made, columns=list(COLUMNS)), BOOT)


def test_heads_are_averaged_before_notes() -> None:
    found = shares(
        ("", "near_miss", 0, "a", 0.4, 0.1),
        ("", "near_miss", 1, "a", 0.2, 0.1),
        ("", "near_miss", 0, "b", 0.6, 0.2),
        ("", "near_miss", 1, "b", 0.4, 0.2),
        ("other_token", "near_miss", 0, "b", 0.1, 0.05),
        ("other_token", "near_miss", 1, "b", 0.3, 0.05),
        ("", "note", 0, "a", 0.7, 0.6),
    ).set_index("place")
    assert list(found.index) == ["note", "near_miss"]  # in the order of places
    own = found.loc["near_miss"]
    assert (own["heads"], own["n"], own["n_other"]) == (2, 2, 1)
    assert (own["mass"], own["other"], own["uniform"]) == pytest.approx((0.4, 0.2, 0.15))
    assert own["ci_low"] == pytest.approx(0.3) and own["ci_high"] == pytest.approx(0.5)


def test_without_matched_tokens_nothing_stands_there() -> None:
    (row,) = shares(("", "sinks", 0, "a", 0.4, 0.1)).to_dict("records")
    assert row["n_other"] == 0 and np.isnan(row["other"]) and np.isnan(row["other_low"])


def test_without_heads_there_are_no_rows() -> None:
    empty = shares()
    assert empty.empty and tuple(empty) == SHARES


def test_every_place_is_named() -> None:
    assert tuple(PLACES) == event_places.PLACES

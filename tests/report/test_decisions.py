"""Counts of decision events, by hand."""

import pandas as pd
import pytest

from mechdistill.report.decisions import EVENTS, event_counts

ROWS = [
    ("a", "test", "reasoning", "region", [5, 6], 0, 2.0),
    ("a", "test", "reasoning", "region", [5], 1, 9.0),
    ("b", "test", "reasoning", "region", [7, 8, 9], 0, 3.0),
    ("c", "ranking", "answer", "departure", [4], 0, -1.0),
]


def test_counts_are_those_of_the_rows() -> None:
    counts = event_counts(pd.DataFrame(ROWS, columns=EVENTS), {"test": 3, "ranking": 1})
    assert list(counts["split"].drop_duplicates()) == ["ranking", "test"]
    counts = counts.set_index(["split", "segment", "kind"])
    assert len(counts) == 12 and counts["events"].sum() == 4
    own = counts.loc[("test", "reasoning", "region")]
    assert list(own[["notes", "with_event", "events", "first"]]) == [3, 2, 3, 2]
    assert own["foils"] == pytest.approx(2.0)  # repeats leave tokens too
    assert own["margin"] == pytest.approx(2.5)  # of the first ones
    assert counts.loc[("ranking", "answer", "departure"), "margin"] == -1.0


def test_without_an_event_there_is_no_mean() -> None:
    counts = event_counts(pd.DataFrame([], columns=EVENTS), {"test": 2})
    assert list(counts["events"]) == [0] * 6 and counts["margin"].isna().all()

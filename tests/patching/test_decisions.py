from __future__ import annotations

import dataclasses

from mechdistill.data.examples import Example
from mechdistill.patching.decisions import near_miss_rate, region_recall
from mechdistill.traces.parse import Mention

from .made import make_trace

EXAMPLE = Example("a", "patching", "", ("x", "w"), ("y", "z"), ("I50", "J45"), (), (), (), "")


def written(*mentions):
    found = tuple(Mention(kind, code, 9, 10, where, 0, how) for kind, code, where, how in mentions)
    return dataclasses.replace(make_trace("a", 8, 20), mentions=found)


def test_regions_count_where_they_are_named_early():
    traces = [
        written(("region", "J45", "early", "kept"), ("region", "I50", "late", "kept")),
        written(("region", "J45", "early", "open"), ("region", "I50", "early", "open")),
        written(("region", "K80", "early", "kept")),
    ]
    assert region_recall(traces, {"a": EXAMPLE}).tolist() == [0.5, 1.0, 0.0]


def test_near_misses_count_where_the_review_keeps_them():
    traces = [
        written(("label", "y", "late", "kept"), ("label", "z", "late", "rejected")),
        written(("label", "x", "late", "kept"), ("label", "y", "answer", "kept")),
        written(("label", "y", "late", "kept"), ("label", "z", "late", "kept")),
    ]
    assert near_miss_rate(traces, {"a": EXAMPLE}).tolist() == [0.5, 0.0, 1.0]

"""How turns are taken and kept, and the ratios that are told of them."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import measurement
from benchmarks.measurement import Case, Comparison, Way, difference, measure, memory_ratio, ratios

WORK = """
import numpy as np
from benchmarks.worker import main

def fill(setting):
    return lambda: {"sum": np.ones(setting["tokens"] * 2**17).sum(keepdims=True)}

def count(setting):
    return lambda: {"sum": np.array([setting["tokens"] * 2.0**17])}

def fail(setting):
    raise ValueError("no such thing")

main({"fill": fill, "count": count, "fail": fail})
"""


@pytest.fixture
def case(tmp_path, monkeypatch):
    (tmp_path / "filling.py").write_text(WORK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MECHDISTILL_BENCH_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("MECHDISTILL_RIVALS", sys.executable)
    ways = [
        Way("fill", "filling"),
        Way("count", "filling", turns=1),
        Way("fail", "filling", rival=True),
        Way("big", "filling", needs_mib=1e9),
        Way("slow", "filling", left_out="not run: too slow"),
    ]
    others = [w.name for w in ways[1:]]
    comparisons = [Comparison("fill", other, faster=True) for other in others]
    setting = {"model": "none", "tokens": 100}
    return Case("filling", "tokens", 100, setting, ways, comparisons, 3)


def test_each_way_has_its_turns_or_says_why_not(case):
    ways = measure(case)["ways"]
    assert [len(ways[name]["seconds"]) for name in ways] == [3, 1, 0, 0, 0]
    assert ways["fail"]["absent"].endswith("ValueError: no such thing")
    assert ways["big"]["absent"].startswith("not run: needs about")
    assert ways["slow"]["absent"] == "not run: too slow"


def test_peak_is_what_the_work_takes(case):
    ways = measure(case)["ways"]
    assert ways["fill"]["peak_mib"] == pytest.approx(100, abs=5)  # 100 * 2**17 numbers of 8 bytes
    assert ways["count"]["peak_mib"] < 5


def test_values_are_compared(case):
    record = measure(case)
    assert record["comparisons"][0]["difference"] == 0.0
    assert np.isnan(record["comparisons"][1]["difference"])


def test_finished_case_is_not_measured_again_unless_it_changed(case):
    first = measure(case)
    assert measure(case)["ways"]["fill"] == first["ways"]["fill"]  # times would differ
    for changed in (
        replace(case, repeats=2),
        replace(case, setting={"model": "none", "tokens": 101}),
    ):
        assert measure(changed)["ways"]["fill"]["seconds"] != first["ways"]["fill"]["seconds"]


def test_other_code_is_measured_again(case, monkeypatch):
    first = measure(case)
    monkeypatch.setattr(measurement, "code_digest", lambda: "other")
    assert measure(case)["code"] == "other" != first["code"]
    assert json.loads(case.path.read_text())["code"] == "other"


RECORD = {
    "ways": {
        "ours": {"first": 3.0, "seconds": [1.0, 2.0, 9.0], "peak_mib": 10.0, "absent": ""},
        "theirs": {"first": 5.0, "seconds": [4.0, 4.0], "peak_mib": 50.0, "absent": ""},
        "once": {"first": 6.0, "seconds": [], "peak_mib": 50.0, "absent": ""},
        "absent": {"first": np.nan, "seconds": [], "peak_mib": np.nan, "absent": "why"},
    }
}


def compared(against, faster):
    return {"way": "ours", "against": against, "faster": faster}


def test_ratio_is_taken_turn_by_turn():
    assert ratios(RECORD, compared("theirs", True)).tolist() == [4.0, 2.0]
    assert ratios(RECORD, compared("theirs", False)).tolist() == [0.25, 0.5]
    assert memory_ratio(RECORD, compared("theirs", True)) == 5.0
    assert memory_ratio(RECORD, compared("theirs", False)) == 0.2


def test_way_with_one_turn_is_compared_by_first_turns():
    assert ratios(RECORD, compared("once", True)).tolist() == [2.0]


def test_absent_way_has_no_ratio():
    assert not len(ratios(RECORD, compared("absent", True)))
    assert np.isnan(memory_ratio(RECORD, compared("absent", True)))


def test_difference_is_relative_to_the_greatest_value_of_a_name():
    one = {"a": np.array([1.0, 100.0]), "b": np.array([1e-3])}
    other = {"a": np.array([2.0, 100.0]), "b": np.array([1e-3])}
    assert difference(one, other) == pytest.approx(0.01)
    assert difference(other, one | {"b": np.array([2e-3])}) == pytest.approx(0.5)
    assert np.isnan(difference({}, other))


def test_ways_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="cannot be compared"):
        difference({"a": np.ones(1)}, {"b": np.ones(1)})
    with pytest.raises(ValueError, match="none"):
        difference({"a": np.array([np.nan])}, {"a": np.ones(1)})

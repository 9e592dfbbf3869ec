"""The page tells the measured numbers, misses included."""

import numpy as np
import pytest

from benchmarks import page
from benchmarks.scaling import fit_power


def way(seconds, peak, absent=""):
    return {
        "first": seconds[0] if seconds else float("nan"),
        "seconds": seconds,
        "peak_mib": peak,
        "absent": absent,
    }


def record(tokens):
    absent = way([], float("nan"), "not run: no such package")
    comparison = {"way": "rows", "difference": 1e-7, "time_target": None, "memory_target": None}
    return {
        "benchmark": "row scoring",
        "axis": "tokens",
        "value": tokens,
        "setting": {"model": "small", "tokens": tokens},
        "machine": "a machine",
        "versions": {"torch": "2"},
        "commit": "abc",
        "ways": {
            "plain": way([1.0 * tokens, 1.0 * tokens], 10.0 * tokens),
            "rows": way([1.25 * tokens, 1.25 * tokens], 10.0 * tokens),
            "eager": way([6.25 * tokens**2] * 2, 500.0 * tokens),
            "nnsight": absent,
        },
        "comparisons": [
            comparison | {"against": "plain", "faster": False, "time_target": 1.03},
            comparison | {"against": "eager", "faster": True, "time_target": 5.0},
            comparison | {"against": "nnsight", "faster": True},
        ],
    }


LIMITS = {
    "tokens": 2048,
    "operations_per_second": 1e9,
    "bytes_per_second": 1e9,
    "pieces": [
        {"name": "a", "part_of": "pass", "operations": 1e6, "bytes": 1e5, "seconds": 2e-3},
        {"name": "b", "part_of": "scores", "operations": 1e3, "bytes": 1e6, "seconds": 4e-3},
    ],
    "profile": {"plain": {"mm": 0.9}, "rows": {"mm": 0.8, "bmm": 0.1}},
}


@pytest.fixture
def text(tmp_path):
    page.write_page([record(2), record(8)], LIMITS, tmp_path)
    return (tmp_path / "benchmarks.md").read_text()


def row(text, *words):
    (line,) = [line for line in text.splitlines() if all(word in line for word in words)]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_targets_are_met_or_missed(text):
    missed = row(text, "2 tokens", "rows, times the cost of plain")
    assert missed[3] == "1.250 (1.25 to 1.25)" and missed[4] == "≤ 1.03: **missed**"
    met = row(text, "8 tokens", "rows, times faster than eager")
    assert met[3] == "40.0 (40 to 40)" and met[4] == "≥ 5: met"
    assert met[5] == "50.0" and met[7] == "1e-07"


def test_absent_way_says_why(text):
    assert row(text, "8 tokens", "nnsight")[3] == "not run: no such package"


def test_exponents_are_fitted(text):
    assert row(text, "| eager |", "2 to 8")[4] == "2.00"
    assert row(text, "| beside the pass |", "2 to 8")[4] == "1.00"


def test_limits_say_what_sets_them(text):
    assert row(text, "| a |")[4:] == ["1.00", "operations", "2.00", "0.50"]
    assert row(text, "| b |")[4:] == ["1.00", "bytes", "4.00", "0.25"]
    assert "add 200.0% to these pieces of a pass; at both limits they would add 100.0%" in text


def test_tables_and_plots_are_written_the_same_each_time(tmp_path, text):
    files = ("ways.csv", "ratios.csv", "curves.svg", "ratios.svg")
    first = [(tmp_path / "benchmarks" / name).read_bytes() for name in files]
    page.write_page([record(2), record(8)], LIMITS, tmp_path)
    assert first == [(tmp_path / "benchmarks" / name).read_bytes() for name in files]
    assert all(f"benchmarks/{name}" in text for name in files[2:])


def test_power_of_noisy_costs_has_an_error():
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    costs = 3 * sizes**1.5 * np.array([1.1, 0.9, 1.1, 0.9])
    expected, covariance = np.polyfit(np.log(sizes), np.log(costs), 1, cov=True)
    power = fit_power(sizes, costs)
    assert power.exponent == pytest.approx(expected[0])
    assert power.error == pytest.approx(np.sqrt(covariance[0, 0]))


def test_no_power_fits_one_size_or_nothing():
    with pytest.raises(ValueError, match="no power"):
        fit_power([2, 2], [1.0, 1.0])
    with pytest.raises(ValueError, match="no power"):
        fit_power([1, 2], [1.0, 0.0])

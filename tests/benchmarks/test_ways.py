"""The benchmarks' ways agree at a tiny size; times say nothing here."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.measurement import difference
from benchmarks.ways import ablation, generation, patching, row_scoring, training_step

SCORING = {"model": "tiny", "tokens": 64}
SWEEP = SCORING | {"conditions": 6}


def test_scores_from_rows_equal_those_from_whole_matrices():
    rows, eager = (row_scoring.prepared(way, SCORING)() for way in ("rows", "eager"))
    assert set(rows) == {"kurtosis", "cosine", "loop", "help"}
    assert all(values.shape == (2, 4) for values in rows.values())
    assert difference(rows, eager) < 1e-5


def test_ways_without_scores_run():
    for way in ("plain", "every variant"):
        assert row_scoring.prepared(way, SCORING)() == {}


def test_heads_and_examples_of_a_setting_are_used():
    shaped = SCORING | {"shape": {"heads": 8, "head_dim": 4}, "examples": 3}
    scores = row_scoring.prepared("rows", shaped)()
    assert scores["help"].shape == (2, 8)


def test_ablation_by_branches_equals_a_pass_for_each_head():
    found, passes = ablation.branches(SCORING)(), ablation.a_pass_a_head(SCORING)()
    assert found["margins"].shape == (8,) and np.ptp(found["margins"]) > 0
    assert difference(found, passes) < 1e-5
    assert ablation.attribution(SCORING)() == {}


def test_sweep_equals_a_pass_for_each_condition():
    sweep, passes = patching.sweep(SWEEP)(), patching.a_pass_each(SWEEP)()
    assert set(sweep) == {"denoise", "noise"} and len(sweep["noise"]) == 6
    assert difference(sweep, passes) < 1e-5
    assert np.ptp(sweep["noise"]) > 0  # else any patch would pass


def test_conditions_write_together_what_they_write_alone():
    setting = SWEEP | {"steps": 4}
    together, alone = (generation.patched(setting, together=way)() for way in (True, False))
    assert together["tokens"].shape == (6, 4)
    np.testing.assert_array_equal(together["tokens"], alone["tokens"])


def test_both_trainings_start_at_the_same_losses():
    setting = SCORING | {"examples": 2}
    steps = [training_step.step(setting, method=name) for name in ("vanilla", "mech")]
    first = [step() for step in steps]
    assert difference(*first) == 0.0
    second = [step() for step in steps]
    assert difference(first[1], second[1]) > 0  # it trains
    assert difference(*second) > 0  # on more than vanilla does


def test_cases_are_planned_without_loading_torch():
    code = "import sys, benchmarks.cases; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])

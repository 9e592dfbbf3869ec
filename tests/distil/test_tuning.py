"""Tuning: each setting is tried on validation notes, the best one is taken over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mechdistill.artifacts import read_json, read_table, write_json
from mechdistill.distil.methods import load_method
from mechdistill.distil.students import settings_of
from mechdistill.parameters import Parameters
from tests.distil.conftest import Study, run_script


@pytest.fixture
def chosen(tmp_path: Path) -> Path:
    scores = [0.5, 0.7, 0.7]
    for number, score in enumerate(scores):
        settings = {"distil.lambda_kl": 1.0 / (number + 1), "distil.lambda_p1": 0.3}
        write_json(
            tmp_path / f"setting{number}.json",
            {"method": "mech", "number": number, "settings": settings, "micro_f1": score},
        )
    trials = [str(tmp_path / f"setting{number}.json") for number in range(len(scores))]
    results = ("--tuned", str(tmp_path / "tuned.json"), "--tuning", str(tmp_path / "t.parquet"))
    run_script("choose_setting", ["--trials", *trials, *results, "--params", "{}"])
    return tmp_path


def test_the_best_setting_is_chosen_and_of_equals_the_first(chosen: Path) -> None:
    found = read_json(chosen / "tuned.json")
    assert (found["number"], found["tried"]) == (1, 3)
    assert found["settings"]["distil.lambda_kl"] == 0.5


def test_the_whole_grid_is_kept(chosen: Path) -> None:
    table = read_table(chosen / "t.parquet")
    assert len(table) == 6
    assert sorted(table.number.unique()) == [0, 1, 2]
    assert table[table.chosen].number.unique().tolist() == [1]
    assert [json.loads(value) for value in table.query("number == 2").value] == [1 / 3, 0.3]


def test_a_method_takes_over_only_what_it_declares(chosen: Path) -> None:
    value = Parameters({"distil.lambda_kl": 9.0, "distil.position_weight": 2.0})
    settings, tried = settings_of(value=value, parameters=("distil.lambda_kl",), tuned=None)
    assert (settings, tried) == ({"distil.lambda_kl": 9.0}, 1)
    keys = ("distil.lambda_kl", "distil.position_weight")
    settings, tried = settings_of(keys, value, chosen / "tuned.json")
    assert settings == {"distil.lambda_kl": 0.5, "distil.position_weight": 2.0}
    assert tried == 3


@pytest.mark.parametrize("method", ["semcot", "mech"])
def test_a_setting_is_tried_on_the_validation_notes(
    study: Study, tmp_path: Path, method: str
) -> None:
    arguments = study.student_arguments(tmp_path, method)
    parameters = json.loads(arguments[arguments.index("--params") + 1]) | {
        "distil.tuning": {"settings": 2, "steps": 2, "seed": 0},
        "traces.early_tokens": 8,
        "traces.max_new_tokens": 12,
        "traces.batch_size": 3,
    }
    inputs = arguments[: arguments.index("--checkpoint") + 2]
    trial = tmp_path / "setting1.json"
    rest = ("--number", "1", "--trial", str(trial), "--params", json.dumps(parameters))
    run_script("try_setting", [*inputs, *rest])
    found = read_json(trial)
    changed = load_method(method).settings_tried[1]
    assert {key: found["settings"][key] for key in changed} == changed
    assert 0.0 <= found["micro_f1"] <= 1.0
    assert not (tmp_path / "checkpoint").exists()

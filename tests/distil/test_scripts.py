"""The scripts on a tiny study: what a student is trained from, and that a kill costs nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mechdistill.artifacts import read_json, read_table
from mechdistill.distil.methods import method_names
from mechdistill.models import loading
from tests.distil.conftest import ROOT, TRAINING, Study, run_script

RESULTS = ("model.safetensors", "config.json", "curve.parquet")


@pytest.fixture(scope="session")
def trained(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mech")
    run_script("train_student", study.student_arguments(folder, "mech"))
    return folder


@pytest.mark.parametrize("method", method_names())
def test_every_method_trains_and_records_its_budget(
    study: Study, tmp_path: Path, method: str
) -> None:
    run_script("train_student", study.student_arguments(tmp_path, method, steps=3))
    budget = read_json(tmp_path / "budget.json")
    assert budget["steps"] == 3
    assert budget["sequences"] == 3 * TRAINING["batch_size"]
    assert budget["teacher_generations"] == (42 if method == "morsd" else 14)
    assert budget["left_out"] == []
    assert budget["settings_tried"] == 1
    assert 0 < budget["target_tokens"] < budget["forward_tokens"]


def test_methods_of_a_seed_use_equal_steps_and_target_tokens(study: Study, tmp_path: Path) -> None:
    budgets = []
    for method in ("vanilla", "mech"):
        run_script("train_student", study.student_arguments(tmp_path / method, method, steps=3))
        budgets.append(read_json(tmp_path / method / "budget.json"))
    for key in ("steps", "sequences", "target_tokens", "parameters", "teacher_generations"):
        assert budgets[0][key] == budgets[1][key]


def test_a_student_trains_without_any_teacher_weights(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: set[str] = set()
    read = loading.read_tensors
    monkeypatch.setattr(loading, "read_tensors", lambda path: opened.add(str(path)) or read(path))
    assert not (study.folder / "teacher.safetensors").exists()
    run_script("train_student", study.student_arguments(tmp_path, "mech", steps=1))
    written = tmp_path / "model.safetensors"  # read back at the end
    assert opened == {str(study.folder / "base.safetensors"), str(written)}


def test_the_learning_curve_holds_every_term_of_every_step(trained: Path) -> None:
    curve = read_table(trained / "curve.parquet")
    assert set(curve.metric) == {
        *("cot_nll", "cot_kl", "p1_attention", "p1_write", "p1_interaction"),
        *("p2_loop", "p2_write", "p2_interaction", "total", "gradient_norm", "learning_rate"),
    }
    assert (curve.groupby("metric").step.nunique() == TRAINING["steps"]).all()
    assert curve.value.notna().all()
    assert list(curve.columns) == ["method", "seed", "step", "metric", "value", "weight"]


def test_a_finished_training_leaves_no_checkpoint(trained: Path) -> None:
    assert not (trained / "checkpoint").exists()


def test_the_cache_says_which_traces_it_uses(study: Study) -> None:
    table = read_table(study.folder / "targets.parquet")
    assert len(table) == 14
    assert table.used.all()
    assert (table.early > 0).all()
    assert (table.refine > 0).all()


def test_a_killed_training_ends_in_the_same_bytes(
    study: Study, trained: Path, tmp_path: Path
) -> None:
    arguments = study.student_arguments(tmp_path, "mech")
    script = str(ROOT / "workflow" / "scripts" / "train_student.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, script, *arguments], env=environment)
    deadline = time.monotonic() + 240
    while not (tmp_path / "checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(random.uniform(0, 0.15))
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert not (tmp_path / "model.safetensors").exists()
    run_script("train_student", arguments)
    for name in RESULTS:
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes(), name
    assert read_json(tmp_path / "budget.json")["steps"] == TRAINING["steps"]


def test_base_student_pools_come_from_its_own_scores(study: Study, tmp_path: Path) -> None:
    run_script(
        "pool_student_heads",
        [
            *("--base", str(study.folder / "base.safetensors")),
            *("--config", str(study.folder / "base.json")),
            *study.data_arguments(),
            *("--pools", str(tmp_path / "pools.json")),
            *(
                "--params",
                '{"heads.pool_size": 3, "heads.pool_temperature": 1.0,'
                ' "heads.minimum_keys": 8, "heads.batch_size": 10}',
            ),
        ],
    )
    pools = read_json(tmp_path / "pools.json")
    assert pools["model"] == "base"
    assert pools["margin_std"] > 0

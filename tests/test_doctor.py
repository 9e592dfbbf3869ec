"""What keeps a study from running is found and comes with its remedy."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mechdistill.artifacts import partial_name
from mechdistill.command import app
from mechdistill.doctor import (
    LEAST_FREE,
    LEAST_MEMORY,
    left_behind,
    members,
    missing_data,
    missing_weights,
    scarce,
    wrong_packages,
)
from mechdistill.study import load_study

ROOT = Path(__file__).parents[1]


def dead_process() -> int:
    """Number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_packages_as_locked_are_no_fault_others_are_named(tmp_path):
    numpy, pandas = (importlib.metadata.version(name) for name in ("numpy", "pandas"))
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"numpy=={numpy}\npandas=={pandas}\n", encoding="utf-8")
    assert not list(wrong_packages(tmp_path, [lock.name]))
    lock.write_text("numpy==0.1\nno-such-package==1.0\n", encoding="utf-8")
    (fault,) = wrong_packages(tmp_path, [lock.name])
    assert f"numpy {numpy} (locked: 0.1)" in fault.what
    assert "no-such-package is missing" in fault.what
    assert "make environment" in fault.remedy


def test_a_build_for_another_device_is_the_locked_version(tmp_path, monkeypatch):
    (tmp_path / "torch.txt").write_text("torch==2.13.0\n", encoding="utf-8")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.13.0+cu130")
    assert not list(wrong_packages(tmp_path, ["torch.txt"]))


def test_a_folder_of_data_that_is_not_there_is_named(tmp_path):
    study = load_study({"study": "paper-mimic-iv"}, ROOT)
    (fault,) = missing_data([study])
    assert fault.what.startswith("paper-mimic-iv: data.source.folder")
    assert fault.remedy
    assert not list(missing_data([load_study({"study": "smoke"}, ROOT)]))


def test_weights_that_are_not_the_studys_are_named(tmp_path):
    study = load_study({"study": "pretrained"}, ROOT)
    checkpoint = study.teacher.checkpoint.model_copy(
        update={"kind": "folder", "name": str(tmp_path), "files": {"model.safetensors": "0" * 64}}
    )
    teacher = study.teacher.model_copy(update={"checkpoint": checkpoint})
    broken = study.model_copy(update={"teacher": teacher})
    (fault,) = missing_weights([broken])
    assert "model.safetensors" in fault.what
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    (fault,) = missing_weights([broken])
    assert "model.safetensors" in fault.what


def test_too_little_room_is_a_fault_at_the_limit():
    assert not list(scarce(LEAST_FREE, LEAST_MEMORY))
    disk, memory = scarce(LEAST_FREE - 2**29, LEAST_MEMORY - 2**29)
    assert disk.what.startswith("3.5 GiB of disk")
    assert "CORES=1" in memory.remedy


def test_a_clean_folder_has_nothing_left_behind(tmp_path):
    assert not list(left_behind(tmp_path, ["tiny"]))


def test_locks_and_half_written_files_of_killed_runs_are_found(tmp_path):
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    incomplete = tmp_path / ".snakemake/incomplete"
    incomplete.mkdir()
    for path in ("results/tiny/a.csv", "results/other/b.csv"):
        (incomplete / base64.urlsafe_b64encode(path.encode()).decode()).touch()
    half = tmp_path / "results/tiny" / partial_name(Path("a.csv"), "123")
    half.parent.mkdir(parents=True)
    half.touch()
    found = [fault.what for fault in left_behind(tmp_path, ["tiny"])]
    assert found == [
        "Snakemake's lock of a killed run is there",
        "a job was cut off while it wrote results/tiny/a.csv",
        f"results/tiny/{half.name} is what a killed job had written so far",
    ]


@pytest.mark.parametrize("how", ["write", "read"])
def test_a_lock_of_dvc_counts_only_when_its_process_has_ended(tmp_path, how):
    lock = tmp_path / ".dvc/tmp/rwlock"
    lock.parent.mkdir(parents=True)
    for pid, wrong in ((os.getpid(), 0), (dead_process(), 1)):
        holder = {"pid": pid, "cmd": "dvc repro"}
        held = {"/data": {how: [holder] if how == "read" else holder}}
        lock.write_text(json.dumps(held), encoding="utf-8")
        assert len(list(left_behind(tmp_path, ["tiny"]))) == wrong
    lock.write_text("half of a js", encoding="utf-8")
    assert not list(left_behind(tmp_path, ["tiny"]))


def test_nothing_is_left_behind_while_a_run_is_at_work(tmp_path):
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    name = tmp_path / "snakemake"
    name.write_text("import time; print('up', flush=True); time.sleep(60)", encoding="utf-8")
    run = subprocess.Popen(
        [sys.executable, str(name)], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    run.stdout.readline()
    try:
        assert not list(left_behind(tmp_path, ["tiny"]))
    finally:
        run.kill()
        run.wait()
    assert list(left_behind(tmp_path, ["tiny"]))


def test_a_joined_study_is_examined_by_its_members():
    names = [study.study for study in members(ROOT, "embedded-full")]
    assert len(names) == 4
    assert all(name.startswith("embedded-full-") for name in names)


def test_the_command_ends_with_its_verdict(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("mechdistill.command.examine", lambda root, study: [])
    well = CliRunner().invoke(app, ["doctor", "smoke"])
    assert well.exit_code == 0, well.output
    assert well.output.splitlines()[-1] == "no faults found for smoke"
    monkeypatch.undo()
    monkeypatch.chdir(ROOT)
    ill = CliRunner().invoke(app, ["doctor", "paper-mimic-iv"])
    assert ill.exit_code == 1
    assert "FAULT  paper-mimic-iv: data.source.folder" in ill.output
    assert CliRunner().invoke(app, ["doctor", "no-such-study"]).exit_code == 2

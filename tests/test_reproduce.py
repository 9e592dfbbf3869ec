"""The driver refuses what cannot be run in one message, and makes deleted files again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mechdistill import reproduce
from mechdistill.errors import InputError


def test_unknown_study_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[1]
    monkeypatch.chdir(root)
    assert reproduce.main(["--study", "nonsense"]) == 1
    error = capsys.readouterr().err
    assert "there is no study 'nonsense'" in error
    assert "What to do: Choose one of" in error


def test_another_folder_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[1]
    monkeypatch.chdir(tmp_path)
    for name in ("Snakefile", "params.yaml"):
        assert reproduce.main([]) == 1
        error = capsys.readouterr().err
        assert f"{tmp_path} is no checkout of mechdistill: it has no {name}" in error
        assert "What to do: start the same command in the folder of the checkout" in error
        assert [path.name for path in tmp_path.iterdir()] == ["Snakefile"] * (name != "Snakefile")
        shutil.copy(root / "Snakefile", tmp_path)


def test_deleted_files_are_those_that_the_summary_misses(tmp_path: Path) -> None:
    rows = ["output_file\tdate\trule\tlog-file(s)\tstatus\tplan"]
    rows += [
        f"{name}\t-\tr\tl\t{status}\tno update"
        for name, status in (("a", "ok"), ("missing", "ok"), ("b", "missing"))
    ]
    listing = [sys.executable, "-c", f"print({chr(10).join(rows)!r})"]
    assert reproduce.deleted_results(listing, tmp_path) == ["b"]
    failing = [sys.executable, "-c", "raise SystemExit('the disk is full')"]
    with pytest.raises(InputError, match=r"could not list .*: the disk is full"):
        reproduce.deleted_results(failing, tmp_path)


@pytest.mark.parametrize("cores", ["0", "-1", "two"])
def test_impossible_number_of_cores_is_named(
    cores: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        reproduce.main([f"--cores={cores}"])
    assert f"argument --cores: '{cores}' (allowed: a whole number" in capsys.readouterr().err


def test_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    sleeper = tmp_path / "snakemake"
    sleeper.write_text("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen([sys.executable, str(sleeper)], cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(InputError, match=rf"already at work in .* \(process {process.pid}\)"):
            reproduce.refuse_second_run(tmp_path)
        reproduce.refuse_second_run(tmp_path / "elsewhere")
    finally:
        process.kill()
        process.wait()

"""The driver refuses what cannot be run in one message, and makes deleted files again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mechdistill import reproduce
from mechdistill.errors import InputError
from mechdistill.joined_study import JoinedStudy, load_joined_study
from mechdistill.teller import Teller


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


def test_of_two_drivers_that_start_together_one_goes_on(tmp_path: Path) -> None:
    with (
        reproduce.only_run(tmp_path),
        pytest.raises(InputError, match="a run is already at work in"),
        reproduce.only_run(tmp_path),
    ):
        raise AssertionError("both run")
    with reproduce.only_run(tmp_path):
        pass


def test_folder_lock_ends_with_a_killed_driver(tmp_path: Path) -> None:
    code = (
        "import pathlib, time; from mechdistill.reproduce import only_run\n"
        f"with only_run(pathlib.Path({str(tmp_path)!r})): print('up', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(InputError, match="already at work"), reproduce.only_run(tmp_path):
        raise AssertionError("both run")
    process.kill()
    process.wait()
    with reproduce.only_run(tmp_path):
        pass


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where a folder belongs")
    with pytest.raises(InputError, match="logs/smoke cannot be written: Not a directory") as error:
        reproduce.make_folder(tmp_path / "logs" / "smoke")
    assert "make the checkout writable" in error.value.remedy


def test_a_full_disk_does_not_stop_the_reading_of_what_snakemake_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "import sys\nfor _ in range(20000): print('x' * 20, file=sys.stderr)\nprint('end')"
    process = reproduce._start([sys.executable, "-c", said], Path.cwd(), os.environ)
    with open("/dev/full", "wb", buffering=0) as full:
        assert reproduce._follow(process, Teller(sys.stdout, {}), full) == 0
    assert "end" in capsys.readouterr().out


@pytest.fixture
def joined() -> JoinedStudy:
    root = Path(__file__).parents[1]
    return load_joined_study({"study": "embedded-full"}, root)


def started(
    monkeypatch: pytest.MonkeyPatch, statuses: dict[str, int], left_out: dict[str, str]
) -> list[tuple[str, str]]:
    """Studies that `run_joined` starts, with their place; nothing really runs."""
    seen: list[tuple[str, str]] = []

    def run(root: Path, study: str, cores: int, targets: object = (), place: str = "") -> int:
        seen.append((study, place))
        return statuses.get(study, 0)

    monkeypatch.setattr(reproduce, "run", run)
    monkeypatch.setattr(JoinedStudy, "left_out_here", lambda self, root: left_out)
    return seen


NAMES = [f"embedded-full-{d}-{s}" for d in ("icd", "foldoc") for s in ("small", "large")]


def test_members_run_in_turn_and_then_the_joined_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, joined: JoinedStudy
) -> None:
    seen = started(monkeypatch, {}, {})
    assert reproduce.run_joined(tmp_path, joined, 2) == 0
    members = [(name, f"member {number} of 4") for number, name in enumerate(NAMES, start=1)]
    assert seen == [*members, ("embedded-full", "")]


def test_a_member_that_cannot_be_had_is_left_out_with_one_message(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    joined: JoinedStudy,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = started(monkeypatch, {}, dict.fromkeys(NAMES[2:], "no dictionary. What to do: get it"))
    assert reproduce.run_joined(tmp_path, joined, 2) == 0
    assert [study for study, _ in seen] == [*NAMES[:2], "embedded-full"]
    assert capsys.readouterr().out.splitlines()[2] == (
        f"member 3 of 4, {NAMES[2]}, is left out: no dictionary. What to do: get it"
    )
    started(monkeypatch, {}, dict.fromkeys(NAMES, "nothing"))
    with pytest.raises(InputError, match="no member of embedded-full can be had here"):
        reproduce.run_joined(tmp_path, joined, 2)


def test_a_failed_member_does_not_hold_the_others_up(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    joined: JoinedStudy,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen = started(monkeypatch, {NAMES[1]: 1}, {})
    assert reproduce.run_joined(tmp_path, joined, 2) == 1
    assert [study for study, _ in seen] == NAMES  # and no joined report
    assert f"FAILED: {NAMES[1]} of embedded-full" in capsys.readouterr().out


def test_a_stop_ends_the_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, joined: JoinedStudy
) -> None:
    seen = started(monkeypatch, {NAMES[1]: reproduce.INTERRUPTED}, {})
    assert reproduce.run_joined(tmp_path, joined, 2) == reproduce.INTERRUPTED
    assert [study for study, _ in seen] == NAMES[:2]


def test_files_of_a_joined_study_are_made_without_its_members(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, joined: JoinedStudy
) -> None:
    seen = started(monkeypatch, {}, {})
    assert reproduce.run_joined(tmp_path, joined, 2, ["results/embedded-full/x"]) == 0
    assert seen == [("embedded-full", "")]

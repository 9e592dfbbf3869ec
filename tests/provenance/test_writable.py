"""Folders that cannot be written are named with what keeps them so and the remedy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.provenance import writable
from mechdistill.provenance.writable import refuse_unwritable


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (".snakemake/log", "provenance/runs/tiny", "results/tiny/heads", "results/other"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def protect(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The system says of this one folder that it cannot be written, as it does to no root."""
    real = os.access
    monkeypatch.setattr(
        writable.os, "access", lambda path, mode: Path(path) != folder and real(path, mode)
    )


def test_writable_folders_and_those_not_made_yet_are_passed(root: Path) -> None:
    refuse_unwritable(root, "tiny")
    refuse_unwritable(root, "new")
    assert not (root / "logs").exists()


@pytest.mark.parametrize(
    "name", [".snakemake", ".snakemake/log", "provenance/runs/tiny", "results/tiny/heads"]
)
def test_each_folder_is_asked(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    protect(monkeypatch, root / name)
    with pytest.raises(InputError, match=f"{root / name} cannot be written: it belongs to") as told:
        refuse_unwritable(root, "tiny")
    assert f"sudo chattr -i {root / name}" in told.value.remedy


def test_where_a_folder_will_be_made_is_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protect(monkeypatch, root / "results")
    refuse_unwritable(root, "tiny")
    with pytest.raises(InputError, match="results cannot be written"):
        refuse_unwritable(root, "new")


def test_another_study_may_be_read_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protect(monkeypatch, root / "results" / "other")
    refuse_unwritable(root, "tiny")


def test_a_mode_is_mended_by_chmod(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = root / "results" / "tiny" / "heads"
    folder.chmod(0o555)
    protect(monkeypatch, folder)
    with pytest.raises(InputError, match="mode dr-xr-xr-x") as told:
        refuse_unwritable(root, "tiny")
    assert f"chmod -R u+rwX {folder}" in told.value.remedy


def test_a_folder_of_another_is_taken_over(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = root / "results" / "tiny"
    protect(monkeypatch, folder)
    monkeypatch.setattr(writable.os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(InputError, match="and you are ") as told:
        refuse_unwritable(root, "tiny")
    assert "sudo chown -R" in told.value.remedy


def test_a_file_in_the_place_of_a_folder_is_named(root: Path) -> None:
    (root / "logs").write_text("")
    with pytest.raises(InputError, match="logs is a file, where a folder belongs"):
        refuse_unwritable(root, "tiny")

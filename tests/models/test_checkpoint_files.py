"""Weights of others: found without importing anything, and only the ones that the study names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.models import checkpoint_files
from mechdistill.models.checkpoint_files import Checkpoint, checked_folder

CONTENT = b"weights"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def write(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(CONTENT)
    return folder


def checkpoint(kind: str, name: str | Path, *files: str, digest: str = DIGEST) -> Checkpoint:
    revision = "v1" if kind == "hub" else None
    return Checkpoint(kind, str(name), revision, dict.fromkeys(files, digest))


def test_a_package_is_found_without_importing_it(tmp_path: Path, monkeypatch) -> None:
    folder = write(tmp_path / "weights_of_a_model", "model.gguf")
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    asked = checkpoint("package", "weights_of_a_model", "model.gguf")
    assert checked_folder(asked) == folder
    assert asked.gguf == "model.gguf"


@pytest.mark.parametrize("name", ["no_such_package_of_weights", "not-a-name", "..", "sys"])
def test_a_missing_package_is_answered_with_how_to_install_it(name: str) -> None:
    with pytest.raises(InputError, match=r"not installed(.|\n)*envs/pretrained\.txt"):
        checked_folder(checkpoint("package", name, "model.gguf"))


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", "a.safetensors", "b.safetensors")
    asked = checkpoint("folder", folder, "a.safetensors", "b.safetensors")
    assert checked_folder(asked) == folder
    assert asked.gguf is None


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        checked_folder(checkpoint("folder", tmp_path / "nowhere", "a.safetensors"))


def test_a_missing_weights_file_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", "a.safetensors")
    with pytest.raises(InputError, match=r"b\.safetensors is missing"):
        checked_folder(checkpoint("folder", folder, "a.safetensors", "b.safetensors"))


def test_other_weights_are_refused_with_both_numbers(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", "a.safetensors")
    other = "0" * 64
    with pytest.raises(InputError, match=f"SHA-256 is {DIGEST}(.|\n)*says {other}"):
        checked_folder(checkpoint("folder", folder, "a.safetensors", digest=other))


def test_weights_that_the_study_does_not_name_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "own", "a.safetensors", "b.safetensors")
    with pytest.raises(InputError, match=r"holds the weights a\.safetensors, b\.safetensors"):
        checked_folder(checkpoint("folder", folder, "a.safetensors"))


def test_a_hub_is_asked_for_that_revision_and_for_no_pickle(tmp_path: Path, monkeypatch) -> None:
    folder = write(tmp_path / "fetched", "a.safetensors")
    asked = []

    def fetch(name, **options):
        asked.append((name, options["revision"], options["allow_patterns"]))
        return str(folder)

    monkeypatch.setattr(checkpoint_files, "snapshot_download", fetch)
    assert checked_folder(checkpoint("hub", "owner/name", "a.safetensors")) == folder
    [(name, revision, patterns)] = asked
    assert (name, revision) == ("owner/name", "v1")
    assert not any(pattern.endswith((".bin", ".pt", ".py", "*")) for pattern in patterns)


def test_a_hub_out_of_reach_is_told_with_a_way_round(monkeypatch) -> None:
    def fetch(name, **options):
        raise OSError("no route")

    monkeypatch.setattr(checkpoint_files, "snapshot_download", fetch)
    with pytest.raises(InputError, match=r"cannot be fetched: no route(.|\n)*kind folder"):
        checked_folder(checkpoint("hub", "owner/name", "a.safetensors"))

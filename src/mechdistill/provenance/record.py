"""The record of one job: what went in, what ran, what came out, on what machine."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdistill.artifacts import how_to_make
from mechdistill.errors import InputError

CODE = ("src", "workflow", "Snakefile", "params.yaml", "studies", "envs")
"""What git must hold unchanged for a commit to name the code of a job."""

REQUIREMENTS = ("requirements.in", "torch.txt", "encoder.txt", "pretrained.txt")


def record_path(log: Path) -> Path:
    """Where the record of a job lies whose log is `logs/STUDY/JOB.log`."""
    return Path("provenance", "runs", log.parent.name, f"{log.stem}.json")


def describe_files(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Path, SHA-256 and size in bytes of every file.

    Raises:
        InputError: a file is missing.
    """
    described = []
    for path in paths:
        try:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = os.fstat(file.fileno()).st_size
        except FileNotFoundError as error:
            raise InputError(f"{path} is missing", how_to_make(path)) from error
        described.append({"path": path, "sha256": digest, "bytes": size})
    return described


def git_state(root: Path) -> dict[str, Any]:
    """Commit of the checkout, and whether its code differs from that commit; nulls without git."""
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--", *CODE)
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def environment(root: Path) -> dict[str, Any]:
    """Python, platform, and the versions of the direct dependencies."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cpu": _cpu(),
        "packages": _versions(root / "envs"),
    }


def seeds(parameters: Mapping[str, Any], arguments: Sequence[str]) -> dict[str, Any]:
    """Every seed that a job got: parameters named so, at any depth, and `--seed`."""
    found = {key: value for key, value in _flat(parameters) if key.endswith("seed")}
    if "--seed" in arguments[:-1]:
        found["--seed"] = arguments[arguments.index("--seed") + 1]
    return found


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _versions(folder: Path) -> dict[str, str]:
    """Installed versions of the packages that the files of `folder` ask for by name."""
    versions = {}
    for name in sorted({name for file in REQUIREMENTS for name in _names(folder / file)}):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # another build may do without it
            continue
    return versions


def _cpu() -> str | None:
    """Model of the processor, as Linux names it; None where it does not."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), None)


def _names(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [name.group() for line in lines if (name := re.match(r"[A-Za-z0-9][\w.-]*", line))]


def _flat(parameters: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value

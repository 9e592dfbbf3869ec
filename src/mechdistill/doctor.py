"""Whether a study can run here: environment, data, server, disk, what a killed run left behind.

Each check yields what is wrong with its remedy; a check that finds nothing says nothing.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from mechdistill.artifacts import RESULTS, partial_name
from mechdistill.audit.checkout import locked_versions
from mechdistill.data.obtainable import why_not_here
from mechdistill.errors import InputError
from mechdistill.joined_study import is_joined, load_joined_study
from mechdistill.models.checkpoint_files import Checkpoint, checked_folder
from mechdistill.provenance.metadata import INCOMPLETE, noted_files
from mechdistill.reproduce import refuse_second_run
from mechdistill.study import Study, load_study

ALWAYS = ("requirements.txt", "torch.txt", "encoder.txt")
"""Lock files of `envs` that every study needs."""
PACKAGED = "pretrained.txt"
"""The one of a teacher whose weights come from a package."""
LEAST_FREE = 4 * 2**30
"""Bytes of disk; the largest packaged study leaves less than half, checkpoints included."""
LEAST_MEMORY = 8 * 2**30
"""Bytes of memory: two jobs of the largest packaged study side by side."""


@dataclass(frozen=True)
class Fault:
    """One thing that keeps a study from running, or will."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"FAULT  {self.what}\n  What to do: {self.remedy}"


def examine(root: Path, study: str) -> list[Fault]:
    """All that is wrong with the checkout at `root` for `study`.

    Raises:
        InputError: there is no such study, or its parameters are wrong.
    """
    studies = members(root, study)
    return [
        *wrong_packages(root / "envs", _locks(studies)),
        *missing_data(studies),
        *missing_weights(studies),
        *unfit_servers(root, studies),
        *scarce(shutil.disk_usage(root).free, psutil.virtual_memory().total),
        *left_behind(root, [study, *(one.study for one in studies if one.study != study)]),
    ]


def members(root: Path, study: str) -> list[Study]:
    """The study, or the members of a joined one."""
    overrides = {"study": study}
    if is_joined(overrides, root):
        return [member.study for member in load_joined_study(overrides, root).members]
    return [load_study(overrides, root)]


def wrong_packages(folder: Path, locks: Sequence[str]) -> Iterator[Fault]:
    """Packages that are missing or of another version than locked in those files of `folder`."""
    strange = []
    locked = locked_versions(folder, locks)
    for name, version in sorted(locked.items()):
        try:
            there = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            strange.append(f"{name} is missing")
            continue
        if there.partition("+")[0] != version.partition("+")[0]:  # builds for CPU and GPU differ
            strange.append(f"{name} {there} (locked: {version})")
    if strange:
        yield Fault(
            f"{len(strange)} of {len(locked)} packages are not as locked: {', '.join(strange)}",
            "make environment, then run its programs (. .venv/bin/activate)",
        )


def missing_data(studies: Sequence[Study]) -> Iterator[Fault]:
    """Data that cannot be had here."""
    for study in studies:
        if reason := why_not_here(study.data.model_dump(mode="json")):
            what, _, remedy = reason.partition(". What to do: ")
            yield Fault(f"{study.study}: {what}", remedy)


def missing_weights(studies: Sequence[Study]) -> Iterator[Fault]:
    """Weights of a teacher that are not here, or not the ones that the study names.

    A hub is not asked: fetching is the workflow's work.
    """
    for study in studies:
        section = study.teacher.checkpoint
        if section is not None and section.kind != "hub":
            try:
                checked_folder(Checkpoint.of(section.model_dump(mode="json")))
            except InputError as error:
                yield Fault(f"{study.study}: {error.what}", error.remedy)


def unfit_servers(root: Path, studies: Sequence[Study]) -> Iterator[Fault]:
    """Servers of a teacher that do not answer, do not serve the model, or read other tokens.

    Tokens are compared once the study has made its tokenizer, in one answer of one token to names
    of labels, which are no restricted data.
    """
    for study in studies:
        section = study.teacher.generation.server
        if section is None:
            continue
        from mechdistill.traces.served.look import look_at_server  # heavy
        from mechdistill.traces.served.server import ServerSettings

        data = root / RESULTS / study.study / "data"
        try:
            look_at_server(
                ServerSettings.of(section.model_dump(mode="json")),
                data / "tokenizer.json",
                data / "label_space.json",
                study.traces.max_new_tokens,
            )
        except InputError as error:
            yield Fault(f"{study.study}: {error.what}", error.remedy)


def scarce(free: int, memory: int) -> Iterator[Fault]:
    """Too little room.

    Args:
        free: bytes of the disk.
        memory: bytes of the machine.
    """
    if free < LEAST_FREE:
        yield Fault(
            f"{free / 2**30:.1f} GiB of disk are free; a study wants {LEAST_FREE / 2**30:.0f}",
            "free some space, or clone to another disk",
        )
    if memory < LEAST_MEMORY:
        yield Fault(
            f"the machine has {memory / 2**30:.1f} GiB of memory; "
            f"two jobs side by side want {LEAST_MEMORY / 2**30:.0f}",
            "run one job at a time: make reproduce CORES=1",
        )


def left_behind(root: Path, studies: Sequence[str]) -> Iterator[Fault]:
    """Locks and half-written files of runs that were killed; nothing while a run is at work."""
    try:
        refuse_second_run(root)
    except InputError:
        return
    again = f"make reproduce STUDY={studies[0]} clears it away and goes on"
    if any((root / ".snakemake" / "locks").glob("*")):
        yield Fault("Snakemake's lock of a killed run is there", f"snakemake --unlock; {again}")
    yield from _dead_dvc_locks(root / ".dvc" / "tmp" / "rwlock")
    folders = tuple(f"{RESULTS}/{study}/" for study in studies)
    unfinished = [path for path in noted_files(root / INCOMPLETE) if path.startswith(folders)]
    if unfinished:
        yield Fault(f"a job was cut off while it wrote {', '.join(unfinished[:5])}", again)
    for study in studies:
        for folder in (RESULTS, "checkpoints"):
            for path in sorted((root / folder / study).rglob(partial_name(Path("*"), "*") + "*")):
                yield Fault(
                    f"{path.relative_to(root)} is what a killed job had written so far",
                    f"rm {path.relative_to(root)}",
                )


def described(root: Path, studies: Sequence[Study]) -> list[str]:
    """What there is, in lines: for a person, and for a report of a fault."""
    import torch  # heavy

    cards = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    free = shutil.disk_usage(root).free / 2**30
    memory = psutil.virtual_memory().total / 2**30
    return [
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"{len(locked_versions(root / 'envs', _locks(studies)))} packages locked",
        f"{psutil.cpu_count()} cores, {memory:.0f} GiB of memory, {free:.0f} GiB of disk free",
        f"GPU: {', '.join(cards) or 'none (packaged studies need none)'}",
        f"studies: {', '.join(study.study for study in studies)}",
    ]


def _locks(studies: Sequence[Study]) -> tuple[str, ...]:
    sections = [study.teacher.checkpoint for study in studies]
    packaged = any(section is not None and section.kind == "package" for section in sections)
    return (*ALWAYS, PACKAGED) if packaged else ALWAYS


def _dead_dvc_locks(file: Path) -> Iterator[Fault]:
    """DVC names in `rwlock` the processes that read or write; a killed one stays named."""
    try:
        content = json.loads(file.read_text(encoding="utf-8") or "{}")
    except (OSError, ValueError):
        return
    holders = {
        int(entry["pid"])
        for of_path in content.values()
        for held in of_path.values()
        for entry in (held if isinstance(held, list) else [held])
        if isinstance(entry, dict) and "pid" in entry
    }
    dead = sorted(pid for pid in holders if not psutil.pid_exists(pid))
    if dead:
        yield Fault(
            f"DVC's lock names a process that has ended ({', '.join(map(str, dead))})",
            f"rm {Path('.dvc', 'tmp', file.name)}",
        )

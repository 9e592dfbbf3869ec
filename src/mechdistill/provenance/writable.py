"""Folders that a run writes to, refused before any work where they cannot be written."""

from __future__ import annotations

import getpass
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil

from mechdistill.artifacts import RESULTS
from mechdistill.errors import InputError

STATE = Path(".snakemake")
PROVENANCE = Path("provenance")
LOGS = Path("logs")


def refuse_unwritable(root: Path, study: str) -> None:
    """Refuse to run where results, logs, records or Snakemake's state cannot be written.

    Snakemake removes a job's old outputs before the job starts, so that it would stop in the midst
    of a run with no word about the remedy.

    Raises:
        InputError: a folder, or the one that it would be made in, cannot be written.
    """
    for folder in _written(root, study):
        if folder.is_file():
            raise InputError(
                f"{folder} is a file, where a folder belongs",
                "move it away; then start the same command again",
            )
        if not os.access(folder, os.W_OK | os.X_OK) and folder.exists():  # a run may remove some
            fact, remedy = _why(folder)
            raise InputError(
                f"{folder} cannot be written: {fact}", f"{remedy}; then start the same command again"
            )


def _written(root: Path, study: str) -> Iterator[Path]:
    """What is there of the folders that a run writes to; of the others, where they will be made."""
    for top in (STATE, PROVENANCE, LOGS / study, Path(RESULTS) / study):
        there = root / top
        while not there.exists() and there != root:
            there = there.parent
        yield there
        if there == root / top:
            for folder, names, _ in os.walk(there):
                yield from (Path(folder, name) for name in sorted(names))


def _why(folder: Path) -> tuple[str, str]:
    """What keeps a folder from being written, and what to do about it."""
    about = folder.stat()
    owner = _owner(folder)
    fact = f"it belongs to {owner}, mode {stat.filemode(about.st_mode)}"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        disk = _mount_point(folder)
        return (
            f"its disk is mounted read-only at {disk} ({fact})",
            f"mount it for writing (sudo mount -o remount,rw {disk}), or work in a checkout on "
            "another disk",
        )
    if about.st_mode & stat.S_IRWXU != stat.S_IRWXU and about.st_uid == os.geteuid():
        return fact, f"make it writable: chmod -R u+rwX {folder}"
    if about.st_uid != os.geteuid():
        return (
            f"{fact}, and you are {_user()}",
            f"run as {owner}, or take it over: sudo chown -R {_user()} {folder}",
        )
    return (
        f"{fact}, but the disk does not let it be changed",
        f"look for a protection (lsattr -d {folder}) and take it off (sudo chattr -i {folder})",
    )


def _mount_point(folder: Path) -> Path:
    """Where the disk of a folder is mounted: a bind mount is on the device of what it shows."""
    mounts = {Path(part.mountpoint) for part in psutil.disk_partitions(all=True)}
    above = folder.resolve()
    return next((path for path in (above, *above.parents) if path in mounts), Path("/"))


def _owner(folder: Path) -> str:
    try:
        return folder.owner()
    except KeyError:  # of another machine
        return f"user {folder.stat().st_uid}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, in a container
        return str(os.geteuid())

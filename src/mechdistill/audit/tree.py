"""What lies in a results folder, by its bytes: file times and sizes are never trusted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from mechdistill.artifacts import RESULTS, how_to_make, partial_name
from mechdistill.audit.finding import Finding
from mechdistill.audit.record import File, Record, producers
from mechdistill.digests import sha256_of

LAST = ("report/report.html", "report/findings.txt")
"""What every finished study has."""


def read_tree(root: Path, study: str) -> dict[str, File]:
    """Every file of `results/STUDY`, hashed: path relative to `root` -> what it holds."""
    paths = sorted(path for path in (root / RESULTS / study).rglob("*") if not path.is_dir())
    with ThreadPoolExecutor() as pool:  # hashing leaves Python's lock
        hashes = list(pool.map(_hash_if_there, paths))
    return {
        name: File(path=name, sha256=digest, bytes=path.stat().st_size)
        for path, digest in zip(paths, hashes, strict=True)
        if digest
        for name in [path.relative_to(root).as_posix()]
    }


def stored_hashes(root: Path) -> dict[str, str]:
    """Path -> MD5 of what DVC stored of it: the outputs in dvc.lock; none without that file."""
    stages = _stages(root / "dvc.lock")
    return {out["path"]: out.get("md5", "") for stage in stages for out in stage.get("outs", ())}


def staged_files(root: Path) -> list[str]:
    """The outputs that dvc.yaml lists."""
    stages = _stages(root / "dvc.yaml")
    outs = [out for stage in stages for out in stage.get("outs", ())]
    return [path for out in outs for path in ([out] if isinstance(out, str) else out)]


def changed_files(
    root: Path, tree: Mapping[str, File], records: Sequence[Record], stored: Mapping[str, str]
) -> Iterator[Finding]:
    """Files whose bytes are not those that their job wrote."""
    written = {file.path: file for record in records for file in record.outputs}
    wrote = {file.sha256: file.path for file in written.values()}
    for path, record in sorted(producers(records).items()):
        if path not in tree or tree[path].sha256 == written[path].sha256:
            continue
        what = (
            f"it holds {_short(tree[path].sha256)}; the job {record.job} wrote "
            f"{_short(written[path].sha256)}"
        )
        code = "TAMPERED"
        if other := wrote.get(tree[path].sha256):
            code, what = "SWAPPED", f"{what}; these are the bytes of {other}"
        if path in stored and stored[path] == _md5(root / path):
            code, what = "LAUNDERED", f"{what}; dvc.lock has the bytes that are there now"
        yield Finding(code, path, what, how_to_make(path))


def missing_files(
    tree: Mapping[str, File], records: Iterable[Record], others: Mapping[str, Iterable[str]]
) -> Iterator[Finding]:
    """Files that are not there.

    Args:
        tree: what is there.
        records: of the study; their outputs must be there.
        others: who else says that a file must be there -> paths.
    """
    wanted: dict[str, str] = {}
    for record in records:
        wanted |= {file.path: f"the job {record.job} wrote it" for file in record.outputs}
    for who, paths in others.items():
        for path in paths:
            wanted.setdefault(path, who)
    for path, why in sorted(wanted.items()):
        if path not in tree:
            yield Finding("MISSING", path, f"{why}, and it is not there", how_to_make(path))


def unexplained_files(
    tree: Mapping[str, File],
    records: Sequence[Record],
    noted: Iterable[str],
    unfinished: Iterable[str],
) -> Iterator[Finding]:
    """Files that are there without a record.

    Args:
        tree: what is there.
        records: of the study.
        noted: files that Snakemake has a note on: a job made them, though its record is gone.
        unfinished: files that Snakemake holds for half written.
    """
    made = producers(records)
    read = {file.path: record for record in records for file in record.inputs}
    known, cut_off = set(noted), set(unfinished)
    partial = partial_name(Path("*.*"), "*")  # of any file and process
    for path in tree:
        if fnmatch(PurePosixPath(path).name, partial):
            said = "a job that was killed left it half written"
            yield Finding("INCOMPLETE", path, said, f"delete it: rm {path}")
        elif path in cut_off:
            said = "Snakemake holds it for half written: its job was cut off"
            yield Finding("INCOMPLETE", path, said, how_to_make(path))
        elif path not in made and path in known:
            said = "Snakemake ran a job that made it, and no record of that job is there"
            yield Finding("NO-RECORD", path, said, _record_again(path))
        elif path not in made and path in read:
            said = f"the job {read[path].job} read it, and no record of what made it is there"
            yield Finding("NO-RECORD", path, said, _record_again(path))
        elif path not in made:
            said = "no job is known to have made it"
            yield Finding("ORPHAN", path, said, f"move it out of {RESULTS}/, or delete it")


def _stages(file: Path) -> list[dict[str, Any]]:
    """The stages of a file of DVC; none without the file."""
    if not file.is_file():
        return []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast
    content = yaml.load(file.read_bytes(), loader) or {}
    return list(content.get("stages", {}).values())


def _record_again(path: str) -> str:
    return f"bring the record back (git checkout provenance/runs), or {how_to_make(path)}"


def _hash_if_there(path: Path) -> str:
    return sha256_of(path) if path.is_file() else ""  # a link to nothing is a missing file


def _short(digest: str) -> str:
    return digest[:12]


def _md5(path: Path) -> str:
    """As DVC names files."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()

"""Write a finished study into a folder of its own that others can read, cite and audit.

The folder holds results, job records, Snakemake's notes, parameters, code and lock, and
`ro-crate-metadata.json`, which says what is what (`metadata.py`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mechdistill.artifacts import RESULTS, partial_name
from mechdistill.audit.check import audit
from mechdistill.audit.crate import DESCRIPTION, kept_back
from mechdistill.audit.finding import Verdict
from mechdistill.audit.record import RUNS, File, Record, read_records
from mechdistill.digests import sha256_of
from mechdistill.errors import InputError
from mechdistill.export.metadata import crate_metadata
from mechdistill.provenance.metadata import VERSIONED, note_path, notes_folder
from mechdistill.study import Study, load_study
from mechdistill.study_files import study_layers

CODE_FOLDERS = ("src", "workflow", "envs")
CODE_FILES = (
    *("Snakefile", "Makefile", "pyproject.toml"),
    *("README.md", "LICENSE", "CITATION.cff"),
)
NO_CODE = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
AUDIT = PurePosixPath("provenance", "audit.json")
"""What an audit of the bytes found when the study was exported."""


@dataclass(frozen=True)
class Export:
    """What an export wrote, and what stayed."""

    files: int
    """Of the results."""
    kept_back: int
    bytes: int
    findings: int


def export_study(root: Path, name: str, out: Path, *, with_findings: bool = False) -> Export:
    """Export the study `name` of the checkout at `root` to the new folder `out`.

    It is written under another name first: a folder called `out` is a whole crate. Equal results
    give equal bytes.

    Args:
        root: the checkout.
        name: of the study.
        out: the folder to make.
        with_findings: export even what an audit finds something wrong with; the crate says so.

    Raises:
        InputError: there are no results of that study, something is wrong with them, `out` is
            there already or lies among the results, or cannot be written.
    """
    _refuse_place(root, out)
    verdict = audit(root, name)
    if verdict.findings and not with_findings:
        raise InputError(
            f"the audit of {name} is not clean ({len(verdict.findings)} findings), first "
            f"{verdict.findings[0].code} {verdict.findings[0].where}",
            f"mend what `mechdistill audit {name}` names, or export the findings as well "
            "(--with-findings)",
        )
    study = load_study({"study": name}, root)
    records, _ = read_records(root, name)
    if not records:
        raise InputError(
            f"no record of a job of {name} can be read", f"make {name} again, or bring {RUNS} back"
        )
    with _replacing_folder(out) as folder:
        _copy_code(root, name, folder)
        _copy_records(root, name, records, folder)
        files = _copy_results(root, study, records, folder)
        _write(folder / AUDIT, _as_plain(verdict))
        _write(folder / DESCRIPTION, crate_metadata(study, records, files, verdict, folder))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    recorded = {file.path for record in records for file in record.outputs}
    return Export(
        files=len(files),
        kept_back=sum(kept_back(path, study) for path in recorded),
        bytes=size,
        findings=len(verdict.findings),
    )


def _refuse_place(root: Path, out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise InputError(
            f"{out} is there already", "name a folder that is not there yet, or move it away"
        )
    if out.resolve().is_relative_to((root / RESULTS).resolve()):
        raise InputError(
            f"{out} lies among the results, which hold what jobs made",
            f"name a folder outside {RESULTS}/",
        )


@contextmanager
def _replacing_folder(out: Path) -> Iterator[Path]:
    """A new folder beside `out`, called so when the block ends well, and gone when it does not."""
    temporary = out.with_name(partial_name(out, str(os.getpid())))
    try:
        temporary.mkdir(parents=True)
        yield temporary
        temporary.rename(out)
    except OSError as error:
        raise InputError(
            f"{out} could not be written: {error.strerror or error}",
            "make room there, or name a folder on another disk",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _copy_code(root: Path, name: str, folder: Path) -> None:
    """All that a checkout needs to plan, run or audit this one study."""
    for part in CODE_FOLDERS:
        shutil.copytree(root / part, folder / part, ignore=NO_CODE)
    overlays = [layer.source for layer in study_layers(name, root)]
    for file in (*CODE_FILES, *overlays):
        _copy(root / file, folder / file)


def _copy_records(root: Path, name: str, records: Sequence[Record], folder: Path) -> None:
    """The jobs' records, and Snakemake's notes on what they wrote."""
    shutil.copytree(root / RUNS / name, folder / RUNS / name)
    for path in (Path(file.path) for record in records for file in record.outputs):
        note = note_path(notes_folder(root), path)
        if note.is_file():
            _copy(note, note_path(folder / VERSIONED, path))


def _copy_results(
    root: Path, study: Study, records: Sequence[Record], folder: Path
) -> dict[str, File]:
    """The files that jobs wrote and that may leave: path -> what the copy holds."""
    files = {}
    for path in sorted({file.path for record in records for file in record.outputs}):
        if kept_back(path, study) or not (root / path).is_file():
            continue
        copy = folder / path
        _copy(root / path, copy)
        files[path] = File(path=path, sha256=sha256_of(copy), bytes=copy.stat().st_size)
    return files


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _as_plain(verdict: Verdict) -> dict[str, object]:
    plain = verdict.to_json()
    del plain["seconds"]  # else equal results gave other bytes
    return plain


def _write(path: Path, content: object) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path.write_text(text, encoding="utf-8")

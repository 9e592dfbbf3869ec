"""Snakemake's own notes on the files that jobs made, a second witness beside the records."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mechdistill.audit.finding import Finding
from mechdistill.audit.record import Record, make_again
from mechdistill.provenance.metadata import note_path, notes_folder
from mechdistill.provenance.run import Job, parse

WRAPPER = ["python", "-m", "mechdistill.provenance.run"]


@dataclass(frozen=True)
class Note:
    """What Snakemake ran to make a file, and the SHA-256 of what that read."""

    job: Job
    read: Mapping[str, str]


def read_note(root: Path, path: str) -> Note | None:
    """The note on `path`; None when there is none that can be read."""
    file = note_path(notes_folder(root), Path(path))
    try:
        content = json.loads(file.read_bytes())
        job = _job(content["shellcmd"])
        checksums = content["input_checksums"] or {}
        read = {name: value.removeprefix("sha256:") for name, value in checksums.items()}
        return Note(job, read)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SystemExit):
        return None


def disputes(root: Path, records: Sequence[Record]) -> Iterator[Finding]:
    """Records that Snakemake's notes contradict, at most one finding a job."""
    for record in records:
        remedy = (
            f"bring both back (git checkout {record.path} provenance/metadata), "
            f"or {make_again(record)}"
        )
        for output in record.outputs:
            note = read_note(root, output.path)
            if note is None:
                said = f"no note that can be read says how {output.path} was made"
                yield Finding("NO-NOTE", output.path, said, remedy)
            elif what := _difference(record, note):
                yield Finding("DISPUTED", record.path, f"{what} (note on {output.path})", remedy)
                break


@cache  # a job has a note for each of its files
def _job(command: str) -> Job:
    words = shlex.split(command)
    if words[:3] != WRAPPER:
        raise ValueError("no job of the run wrapper")
    return parse(words[3:])


def _difference(record: Record, note: Note) -> str:
    """The first thing in which they differ, in words; "" when they agree."""
    ran = note.job
    facts: dict[str, tuple[Any, Any]] = {
        "the command": (record.command, (ran.script, *ran.arguments)),
        "the parameters": (record.parameters, json.loads(ran.params)),
        "the code": (record.code.fingerprint, ran.code),
        "the outputs": ([file.path for file in record.outputs], list(ran.outputs)),
        "the inputs": ([file.path for file in record.inputs], list(ran.inputs)),
        "the log": (record.name, ran.log.stem),
    }
    for name, (recorded, noted) in facts.items():
        if recorded != noted:
            return f"{name} of the job: {_first_difference(recorded, noted)}"
    for file in record.inputs:
        seen = note.read.get(file.path)
        if seen and seen != file.sha256:
            return f"{file.path}: the record has {file.sha256[:12]}, Snakemake read {seen[:12]}"
    return ""


def _first_difference(recorded: Any, noted: Any) -> str:
    if isinstance(recorded, dict) and isinstance(noted, dict):
        for key in sorted({*recorded, *noted}):
            if recorded.get(key) != noted.get(key):
                return f"{key} is {recorded.get(key)!r} in the record, {noted.get(key)!r} in it"
    if isinstance(recorded, list | tuple):
        here = [item for item in recorded if item not in noted]
        there = [item for item in noted if item not in recorded]
        return f"the record has {here or 'another order'}, Snakemake {there or 'another order'}"
    return f"the record has {str(recorded)[:12]}, Snakemake {str(noted)[:12]}"

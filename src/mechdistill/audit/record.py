"""The records of a study's jobs, read and checked for their own consistency.

A record is what the run wrapper (`provenance/run.py`) left in `provenance/runs/STUDY/JOB.json`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from mechdistill.artifacts import RESULTS, how_to_make
from mechdistill.audit.finding import Finding
from mechdistill.provenance.fingerprint import Fingerprint

RUNS = PurePosixPath("provenance", "runs")


def _inside(path: str) -> str:
    if not PurePosixPath(path).is_absolute() and ".." in PurePosixPath(path).parts:
        raise ValueError("leads out of the checkout")
    return path


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class File(_Read):
    """Bytes that a job read or wrote."""

    path: Annotated[str, AfterValidator(_inside)]
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(alias="bytes", ge=0)


class Code(_Read):
    """The code that a job ran: files with the hash of what they say."""

    fingerprint: str
    files: dict[str, str] = Field(min_length=1)
    not_in_fingerprint: tuple[str, ...]


class Machine(_Read):
    """Where a job ran. `cpu` is the model of `processor`, where the system tells it."""

    python: str
    platform: str
    processor: str
    cpu: str | None = None
    packages: dict[str, str]


class Record(_Read):
    """One job: what went in, what ran, what came out. `path` is the record's own.

    `accelerator` is the model of the GPU that the job used, `slurm_job_id` is there where Slurm
    chose its machine, `services` are the servers that it asked, as each described itself.
    """

    path: str
    study: str
    rule: str
    job: str
    command: tuple[str, ...] = Field(min_length=1)
    parameters: dict[str, Any]
    code: Code
    inputs: tuple[File, ...]
    outputs: tuple[File, ...] = Field(min_length=1)
    git: dict[str, Any]
    environment: Machine
    accelerator: str | None = None
    slurm_job_id: str | None = None
    services: tuple[dict[str, Any], ...] = ()
    threads: int
    started: datetime
    ended: datetime
    wall_seconds: float | None = None
    peak_memory_bytes: int | None = None

    @property
    def name(self) -> str:
        """File name of log and record: `train_student-mech-0`."""
        return PurePosixPath(self.path).stem


def read_records(root: Path, study: str) -> tuple[list[Record], list[Finding]]:
    """The records of `study` that can be read, by name, and a finding for each that cannot."""
    records, findings = [], []
    for file in sorted((root / RUNS / study).glob("*.json")):
        where = str(file.relative_to(root))
        try:
            content = json.loads(file.read_bytes())
            records.append(Record.model_validate({**content, "path": where}))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            findings.append(_unreadable(where, f"{place}: {first['msg']}"))
        except (ValueError, TypeError, OSError) as error:
            findings.append(_unreadable(where, str(error)))
    return records, findings


def all_records(root: Path) -> list[Record]:
    """The readable records of every study: a joined one goes back to those of its members."""
    folders = sorted(path for path in (root / RUNS).glob("*") if path.is_dir())
    return [record for folder in folders for record in read_records(root, folder.name)[0]]


def producers(records: Iterable[Record]) -> dict[str, Record]:
    """Path -> the record of the job that made it (of two that claim it, the first)."""
    made: dict[str, Record] = {}
    for record in records:
        for output in record.outputs:
            made.setdefault(output.path, record)
    return made


def contradictions(records: Sequence[Record], study: str) -> Iterator[Finding]:
    """Records that are not of this study or job, that contradict themselves or each other."""
    claims: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        yield from _of_another_place(record, study)
        yield from _in_itself(record)
        for output in record.outputs:
            claims[output.path].append(record)
    for path, claiming in claims.items():
        if len(claiming) > 1:
            names = " and ".join(record.path for record in claiming)
            yield Finding(
                "FORGED",
                claiming[1].path,
                f"{names} both say that their job made {path}",
                f"delete the false one; if in doubt both, and {how_to_make(path)}",
            )


def make_again(record: Record) -> str:
    """What to do so that a job runs again and leaves a true record."""
    return how_to_make(record.outputs[0].path)


def machine(record: Record) -> str:
    """The kind of machine that a job ran on: `x86_64 (AMD EPYC), NVIDIA H200`."""
    own = record.environment
    cpu = f" ({own.cpu})" if own.cpu else ""
    gpu = f", {record.accelerator}" if record.accelerator else ""
    return f"{own.processor}{cpu}{gpu}"


def _of_another_place(record: Record, study: str) -> Iterator[Finding]:
    remedy = f"bring the true record back (git checkout {record.path}), or {make_again(record)}"
    folder = f"{RESULTS}/{study}/"
    strange = [file.path for file in record.outputs if not file.path.startswith(folder)]
    if record.study != study:
        said = f"it is a record of the study {record.study}"
        yield Finding("FOREIGN", record.path, said, remedy)
    elif strange:
        said = f"its job wrote {strange[0]}, which is no file of the study {study}"
        yield Finding("FOREIGN", record.path, said, remedy)
    rest = record.name.removeprefix(record.rule).removeprefix("-")
    if not record.name.startswith(record.rule) or record.job != f"{record.rule} {rest}".strip():
        said = f"it is the record of the job {record.job!r}, which its name does not say"
        yield Finding("FOREIGN", record.path, said, remedy)


def _in_itself(record: Record) -> Iterator[Finding]:
    remedy = f"bring the true record back (git checkout {record.path}), or {make_again(record)}"
    script = record.command[0]
    if Fingerprint(record.code.files).digest != record.code.fingerprint:
        said = "its fingerprint is not that of the code files which it lists"
        yield Finding("FORGED", record.path, said, remedy)
    if script not in record.code.files:
        said = f"it does not list {script}, which it says it ran, as code"
        yield Finding("FORGED", record.path, said, remedy)
    if PurePosixPath(script).stem != record.rule:
        said = f"it is of the rule {record.rule} and ran {script}"
        yield Finding("FORGED", record.path, said, remedy)
    for output in record.outputs:
        if output.path not in record.command:
            said = f"{output.path} is among its outputs, not in its command"
            yield Finding("FORGED", record.path, said, remedy)
    if record.code.not_in_fingerprint:
        yield Finding(
            "HIDDEN-CODE",
            record.path,
            f"the job imported {', '.join(record.code.not_in_fingerprint)} by a computed name",
            "name the file in the rule (`also`), so that its changes are seen",
        )
    if record.ended < record.started:
        yield Finding(
            "CLOCK",
            record.path,
            f"the job started {record.started.isoformat()} and ended {record.ended.isoformat()}",
            f"set the machine's clock; {make_again(record)}",
        )


def _unreadable(where: str, reason: str) -> Finding:
    return Finding(
        "BAD-RECORD", where, reason, f"bring it back (git checkout {where}), or run its job again"
    )

"""What jobs ran with against what the checkout has now: parameters, code, locked packages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdistill.audit.finding import Finding
from mechdistill.audit.record import Record, make_again
from mechdistill.errors import InputError
from mechdistill.joined_study import JoinedStudy
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.record import REQUIREMENTS
from mechdistill.study import Study

LOCKS = ("requirements.txt", *(name for name in REQUIREMENTS if name.endswith(".txt")))


def stale_parameters(records: Sequence[Record], study: Study | JoinedStudy) -> Iterator[Finding]:
    """Parameters that a job ran with and the study now gives another value, one finding a key."""
    for record in records:
        for key, recorded in record.parameters.items():
            try:
                now = json.loads(study.subset([key]))[key]
            except InputError:
                said = f"the job {record.job} ran with {key}, which is no parameter any more"
                yield Finding("STALE-PARAMETER", f"{record.path}: {key}", said, make_again(record))
                continue
            for path, before, after in _differences(key, recorded, now):
                yield Finding(
                    "STALE-PARAMETER",
                    f"{record.path}: {path}",
                    f"the job {record.job} ran with {before}, the study {study.study} now has "
                    f"{after}",
                    make_again(record),
                )


def stale_code(records: Sequence[Record], sources: SourceTree) -> Iterator[Finding]:
    """Jobs that ran other code than the checkout has, with the files that differ."""
    known: dict[str, list[str]] = {}
    for record in records:
        recorded = record.code.files
        if record.code.fingerprint not in known:
            known[record.code.fingerprint] = _changed_files(recorded, sources)
        if changed := known[record.code.fingerprint]:
            yield Finding(
                "STALE-CODE",
                record.path,
                f"the job {record.job} ran other code than is here: {', '.join(changed)}",
                f"check out the commit that it ran ({record.git.get('commit')}), "
                f"or {make_again(record)}",
            )


def other_packages(records: Sequence[Record], locked: Mapping[str, str]) -> Iterator[Finding]:
    """Jobs that ran with packages of other versions than the lock has."""
    for record in records:
        strange = [
            f"{name} {version} (locked: {locked[name]})"
            for name, version in sorted(record.environment.packages.items())
            if name in locked and version.partition("+")[0] != locked[name].partition("+")[0]
        ]
        if strange:
            yield Finding(
                "ENVIRONMENT",
                record.path,
                f"the job {record.job} ran with {', '.join(strange)}",
                f"make the locked environment (make environment), then {make_again(record)}",
            )


def mixed_machines(records: Sequence[Record]) -> Iterator[Finding]:
    """Jobs that ran on another machine than most jobs of the study, at most one finding a job.

    All must share the kind of processor and Python. Models of processors and GPUs may differ where
    Slurm chose the machine, as the record then says: a partition may hold several. A job that Slurm
    did not start must have run on the usual model, or on one that Slurm used.
    """
    by_slurm = [record for record in records if record.slurm_job_id]
    named: set[str] = set()
    for look in (_kind, _cpu, _accelerator):
        seen = Counter(filter(None, map(look, records)))
        usual = [own for own, _ in seen.most_common(1)]
        free = [] if look is _kind else by_slurm
        allowed = {None, *usual, *map(look, free)}
        for record in records:
            if look(record) not in allowed and record.path not in named:
                named.add(record.path)
                yield Finding(
                    "MIXED-MACHINES",
                    record.path,
                    f"the job {record.job} ran on {look(record)}, most jobs on {usual[0]}",
                    make_again(record),
                )


def locked_versions(folder: Path, locks: Sequence[str] = LOCKS) -> dict[str, str]:
    """Package -> version, of the lock files in `envs`, all of them if none are named."""
    pin = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;]+)", re.MULTILINE)
    texts = [(folder / name).read_text(encoding="utf-8") for name in locks]
    return {name: version for text in texts for name, version in pin.findall(text)}


def _kind(record: Record) -> str:
    return f"{record.environment.processor} with Python {record.environment.python}"


def _cpu(record: Record) -> str | None:
    return record.environment.cpu


def _accelerator(record: Record) -> str | None:
    return record.accelerator


def _changed_files(recorded: Mapping[str, str], sources: SourceTree) -> list[str]:
    """Files that say other things than recorded, are gone, or are now imported besides."""
    try:
        now = sources.fingerprint(*(name for name in recorded if name.endswith(".py"))).files
    except InputError as error:  # a file is gone, or no Python any more
        return [error.what]
    return sorted(name for name in {*recorded, *now} if recorded.get(name) != now.get(name))


def _differences(key: str, before: Any, after: Any) -> Iterator[tuple[str, str, str]]:
    """The dotted keys under `key` whose values differ, with both values as JSON."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from _differences(f"{key}.{name}", before.get(name), after.get(name))
    elif before != after or type(before) is not type(after):
        yield key, json.dumps(before), json.dumps(after)

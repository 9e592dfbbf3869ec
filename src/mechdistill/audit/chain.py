"""The chain from file to file: what a job read is what the job before it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mechdistill.artifacts import RESULTS
from mechdistill.audit.finding import Finding
from mechdistill.audit.record import File, Record, make_again, producers


def broken_links(
    records: Sequence[Record], tree: Mapping[str, File], sources: Mapping[str, str]
) -> Iterator[Finding]:
    """Jobs that read other bytes than the job before them wrote, or than lie there.

    Args:
        records: of the study.
        tree: the results folder.
        sources: files from outside the results -> SHA-256 now.
    """
    made = producers(records)
    wrote = {file.path: file.sha256 for record in records for file in record.outputs}
    for record in records:
        for file in record.inputs:
            if file.path in wrote:
                right, whose = wrote[file.path], f"the job {made[file.path].job} wrote"
            elif file.path in tree:
                right, whose = tree[file.path].sha256, "the file now holds"
            else:
                right, whose = sources.get(file.path, ""), "the file now holds"
            if file.sha256 != right:
                yield Finding(
                    "BROKEN-CHAIN",
                    f"{record.path}: {file.path}",
                    f"the job {record.job} read {file.sha256[:12]}, {whose} "
                    f"{right[:12] or 'nothing'}",
                    make_again(record),
                )


def unused_jobs(records: Sequence[Record], study: str) -> Iterator[Finding]:
    """Jobs of which nothing reaches the report or its audit: left over from other students."""
    made = producers(records)
    shown = tuple(f"{RESULTS}/{study}/{folder}/" for folder in ("report", "audit"))
    waiting = [record for path, record in made.items() if path.startswith(shown)]
    used: set[str] = set()
    while waiting:
        record = waiting.pop()
        if record.path not in used:
            used.add(record.path)
            waiting += [made[file.path] for file in record.inputs if file.path in made]
    for record in records:
        if record.path not in used:
            paths = " ".join(file.path for file in record.outputs)
            yield Finding(
                "UNUSED",
                record.path,
                f"nothing of the report depends on the job {record.job}",
                f"delete what it left: rm {record.path} {paths}",
            )

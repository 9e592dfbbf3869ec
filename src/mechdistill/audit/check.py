"""The audit of one study: every check, in the order in which a person would mend."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from mechdistill.artifacts import RESULTS
from mechdistill.audit import chain, checkout, crate, notes, record, tree
from mechdistill.audit.finding import Finding, Verdict
from mechdistill.audit.numbers import wrong_numbers
from mechdistill.audit.record import File, Record
from mechdistill.audit.replay import replayed
from mechdistill.digests import sha256_of
from mechdistill.errors import InputError
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.metadata import INCOMPLETE, noted_files, notes_folder
from mechdistill.study import Study, load_study


def audit(root: Path, study: str, *, numbers: bool = False, replay: int = 0) -> Verdict:
    """Audit `results/STUDY` of the checkout at `root`.

    Bytes, records, parameters, code and packages always; nothing is run for that.

    Args:
        root: the checkout.
        study: name of the study.
        numbers: derive every number and picture of the report once more, too.
        replay: how many jobs, drawn at random, to run once more, too.

    Raises:
        InputError: there are no results of that study, or the checkout has no such study.
    """
    begin = time.monotonic()
    if not (root / RESULTS / study).is_dir():
        raise InputError(
            f"there are no results of the study {study}: {RESULTS}/{study} is missing",
            f"make them (make reproduce STUDY={study}), or fetch them (dvc pull)",
        )
    settings = load_study({"study": study}, root)
    files = tree.read_tree(root, study)
    records, findings = record.read_records(root, study)
    findings += about_files(root, study, files, records)
    findings += about_records(root, study, files, records)
    findings += about_checkout(root, settings, records)
    if numbers:
        findings += wrong_numbers(records, root, restricted=settings.restricted)
    findings += replayed(records, root, replay, restricted=settings.restricted)
    return _verdict(study, findings, records, files, begin)


def audit_crate(folder: Path, root: Path, *, numbers: bool = False) -> Verdict:
    """Audit an exported study.

    Files, records, notes and parameters are those of the crate; code and lock those of the
    checkout, and nothing that came with the crate is run. Numbers are derived only where nothing
    is wrong with the bytes: a forged record could name other commands.

    Args:
        folder: the crate.
        root: the checkout.
        numbers: derive every number and picture of the report once more, too.

    Raises:
        InputError: the crate holds no study, or none from which numbers can be derived.
    """
    begin = time.monotonic()
    study = crate.study_in(folder)
    settings = load_study({"study": study}, folder)
    if numbers and settings.restricted:
        raise InputError(
            f"{folder} holds no rows of single examples, since the data of {study} are restricted",
            "audit what it holds: add --bytes-only",
        )
    files = tree.read_tree(folder, study)
    records, findings = record.read_records(folder, study)
    findings += [
        finding
        for finding in about_files(folder, study, files, records)
        if finding.code != "MISSING" or not crate.kept_back(finding.where, settings)
    ]
    findings += about_records(folder, study, files, records)
    findings += about_checkout(root, settings, records)
    if numbers and not findings:
        findings += wrong_numbers(records, folder, code=root)
    return _verdict(study, findings, records, files, begin)


def _verdict(
    study: str,
    findings: list[Finding],
    records: list[Record],
    files: dict[str, File],
    begin: float,
) -> Verdict:
    size = sum(file.size for file in files.values())
    seconds = time.monotonic() - begin
    return Verdict(study, tuple(findings), len(records), len(files), size, seconds)


def about_files(
    root: Path, study: str, files: dict[str, File], records: list[Record]
) -> Iterator[Finding]:
    """What lies there against what jobs wrote."""
    folder = f"{RESULTS}/{study}/"
    noted = [path for path in noted_files(notes_folder(root)) if path.startswith(folder)]
    unfinished = noted_files(root / INCOMPLETE)
    staged = [path for path in tree.staged_files(root) if path.startswith(folder)]
    last = [f"{folder}{name}" for name in tree.LAST]
    others = {
        "Snakemake ran a job that wrote it": noted,
        "dvc.yaml lists it": staged,
        "every study ends with it": last,
    }
    yield from tree.changed_files(root, files, records, tree.stored_hashes(root))
    yield from tree.missing_files(files, records, others)
    yield from tree.unexplained_files(files, records, noted, unfinished)


def about_records(
    root: Path, study: str, files: dict[str, File], records: list[Record]
) -> Iterator[Finding]:
    """Records against themselves, each other and Snakemake's notes."""
    read = {file.path for job in records for file in job.inputs}
    outside = {path for path in read if not path.startswith(f"{RESULTS}/{study}/")}
    sources = {path: sha256_of(root / path) for path in outside if (root / path).is_file()}
    yield from record.contradictions(records, study)
    yield from notes.disputes(root, records)
    yield from chain.broken_links(records, files, sources)
    yield from chain.unused_jobs(records, study)


def about_checkout(root: Path, study: Study, records: list[Record]) -> Iterator[Finding]:
    """Records against what the checkout would run today."""
    yield from checkout.stale_parameters(records, study)
    yield from checkout.stale_code(records, SourceTree(root))
    yield from checkout.other_packages(records, checkout.locked_versions(root / "envs"))
    yield from checkout.mixed_machines(records)

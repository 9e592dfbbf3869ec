"""The audit of a study: every check, in the order in which a person would mend.

Of a joined study its members first, since its report is made from theirs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mechdistill.artifacts import RESULTS
from mechdistill.audit import chain, checkout, crate, notes, record, tree
from mechdistill.audit.finding import Finding, Verdict
from mechdistill.audit.numbers import wrong_numbers
from mechdistill.audit.record import File, Record
from mechdistill.audit.replay import replayed
from mechdistill.digests import sha256_of
from mechdistill.errors import InputError
from mechdistill.joined_study import JoinedStudy, is_joined, load_joined_study
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.metadata import INCOMPLETE, noted_files, notes_folder
from mechdistill.study import Study, load_study

PAGES = "audit"
"""Folder of a study's results that holds the pages of the audit."""
OF_THE_AUDIT = ("audit_results", "derive_numbers")
"""Rules that make them; they read the whole checkout and cannot run in a folder of their own."""


@dataclass(frozen=True)
class Evidence:
    """What is there of one study, files hashed.

    Attributes:
        root: the checkout, or an exported study.
        settings: the study as that has it now.
        files: path relative to the root -> what it holds.
        records: those that can be read.
        unreadable: a finding for each other.
        noted: files that Snakemake has a note on.
        unfinished: files that it holds for half written.
        staged: files that dvc.yaml lists.
    """

    root: Path
    settings: Study | JoinedStudy
    files: Mapping[str, File]
    records: tuple[Record, ...]
    unreadable: tuple[Finding, ...]
    noted: tuple[str, ...]
    unfinished: tuple[str, ...]
    staged: tuple[str, ...]

    @property
    def study(self) -> str:
        """Its name."""
        return self.settings.study

    def without(self, folder: str) -> Evidence:
        """The same as if no job had made anything in `folder` of the results."""
        start = f"{RESULTS}/{self.study}/{folder}/"

        def others(paths: Sequence[str]) -> tuple[str, ...]:
            return tuple(path for path in paths if not path.startswith(start))

        return replace(
            self,
            files={path: self.files[path] for path in others([*self.files])},
            records=tuple(job for job in self.records if others([f.path for f in job.outputs])),
            noted=others(self.noted),
            unfinished=others(self.unfinished),
            staged=others(self.staged),
        )

    @property
    def wrote(self) -> dict[str, str]:
        """File -> SHA-256 of what its job says that it wrote."""
        return {file.path: file.sha256 for job in self.records for file in job.outputs}


def audit(root: Path, study: str, *, numbers: bool = False, replay: int = 0) -> Verdict:
    """Audit `results/STUDY` of the checkout at `root`, of a joined study with all its members.

    Bytes, records, parameters, code and packages always; nothing is run for that.

    Args:
        root: the checkout.
        study: name of the study.
        numbers: derive every number and picture of the report once more, too.
        replay: how many jobs of the study (and of each member), drawn at random, to run once
            more, too.

    Raises:
        InputError: there are no results of that study, or the checkout has no such study.
    """
    begin = time.monotonic()
    seen = witnesses(root, study)
    verdicts = compared(seen, root)
    for number, each in enumerate(seen):
        found = list(verdicts[number].findings)
        restricted = each.settings.restricted
        if numbers:
            found += wrong_numbers(each.records, root, restricted=restricted)
        jobs = [job for job in each.records if job.rule not in OF_THE_AUDIT]
        found += replayed(jobs, root, replay, restricted=restricted)
        verdicts[number] = replace(verdicts[number], findings=tuple(found))
    return Verdict.of(study, verdicts, time.monotonic() - begin)


def audit_within_run(root: Path, study: str) -> tuple[Verdict, list[Evidence]]:
    """The audit as a job of the study: without what such jobs write, and nothing is run.

    Returns:
        the verdict, and what was there of members and study.

    Raises:
        InputError: as `audit`.
    """
    seen = witnesses(root, study)
    seen[-1] = seen[-1].without(PAGES)
    return Verdict.of(study, compared(seen, root)), seen


def witnesses(root: Path, study: str) -> list[Evidence]:
    """What is there of a study, behind that of its members.

    Raises:
        InputError: as `audit`.
    """
    return [look(root, name) for name in (*members(root, study), study)]


def compared(seen: Sequence[Evidence], root: Path) -> list[Verdict]:
    """The verdict on each, by what its witnesses say; members stand before what joins them."""
    verdicts = []
    elsewhere: dict[str, str] = {}
    for each in seen:
        verdicts.append(verdict_on(each, compare(each, elsewhere, root)))
        elsewhere |= each.wrote
    return verdicts


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
    try:
        seen = look(folder, study)
    except InputError as error:
        raise InputError(
            f"{folder} cannot be read here: {error.what}",
            f"audit it in a checkout of the commit that made it ({crate.commits(folder)})",
        ) from None
    if numbers and seen.settings.restricted:
        raise InputError(
            f"{folder} holds no rows of single examples, since the data of {seen.study} are "
            "restricted",
            "audit what it holds: add --bytes-only",
        )
    findings = [
        finding
        for finding in compare(seen, {}, root)
        if finding.code != "MISSING" or not crate.kept_back(finding.where, seen.settings)
    ]
    if numbers and not findings:
        findings += wrong_numbers(seen.records, folder, code=root)
    return replace(verdict_on(seen, findings), seconds=time.monotonic() - begin)


def members(root: Path, study: str) -> list[str]:
    """The studies that a joined one is made from and that have results here; none of another.

    Raises:
        InputError: the checkout has no such study.
    """
    if not is_joined({"study": study}, root):
        return []
    joined = load_joined_study({"study": study}, root)
    return [member.name for member in joined.members if (root / RESULTS / member.name).is_dir()]


def look(root: Path, study: str) -> Evidence:
    """Read and hash all that is there of a study.

    Raises:
        InputError: there are no results of it, or the checkout has no such study.
    """
    if not (root / RESULTS / study).is_dir():
        raise InputError(
            f"there are no results of the study {study}: {RESULTS}/{study} is missing",
            f"make them (make reproduce STUDY={study}), or fetch them (dvc pull)",
        )
    settings: Study | JoinedStudy
    if is_joined({"study": study}, root):
        settings = load_joined_study({"study": study}, root)
        settings = settings.without(settings.left_out_here(root))
    else:
        settings = load_study({"study": study}, root)
    records, unreadable = record.read_records(root, study)
    folder = f"{RESULTS}/{study}/"
    return Evidence(
        root,
        settings,
        tree.read_tree(root, study),
        tuple(records),
        tuple(unreadable),
        *(
            tuple(path for path in paths if path.startswith(folder))
            for paths in (
                noted_files(notes_folder(root)),
                noted_files(root / INCOMPLETE),
                tree.staged_files(root),
            )
        ),
    )


def compare(seen: Evidence, elsewhere: Mapping[str, str], root: Path) -> Iterator[Finding]:
    """What the witnesses say against each other.

    Args:
        seen: of the study.
        elsewhere: file of a member -> SHA-256 of what its job wrote.
        root: the checkout whose code and lock the jobs must have run.
    """
    yield from seen.unreadable
    yield from about_files(seen)
    yield from about_records(seen, elsewhere)
    yield from about_checkout(seen, root)


def about_files(seen: Evidence) -> Iterator[Finding]:
    """What lies there against what jobs wrote."""
    last = [f"{RESULTS}/{seen.study}/{name}" for name in tree.LAST]
    others = {
        "Snakemake ran a job that wrote it": seen.noted,
        "dvc.yaml lists it": seen.staged,
        "every study ends with it": last,
    }
    stored = tree.stored_hashes(seen.root)
    yield from tree.changed_files(seen.root, seen.files, seen.records, stored)
    yield from tree.missing_files(seen.files, seen.records, others)
    yield from tree.unexplained_files(seen.files, seen.records, seen.noted, seen.unfinished)


def about_records(seen: Evidence, elsewhere: Mapping[str, str]) -> Iterator[Finding]:
    """Records against themselves, each other and Snakemake's notes."""
    read = {file.path for job in seen.records for file in job.inputs}
    outside = {path for path in read if not path.startswith(f"{RESULTS}/{seen.study}/")}
    there = (path for path in outside - {*elsewhere} if (seen.root / path).is_file())
    sources = {**elsewhere, **{path: sha256_of(seen.root / path) for path in there}}
    yield from record.contradictions(seen.records, seen.study)
    yield from notes.disputes(seen.root, seen.records)
    yield from chain.broken_links(seen.records, seen.files, sources)
    yield from chain.unused_jobs(seen.records, seen.study)


def about_checkout(seen: Evidence, root: Path) -> Iterator[Finding]:
    """Records against what the checkout at `root` would run today."""
    locked = checkout.locked_versions(root / "envs")
    yield from checkout.stale_parameters(seen.records, seen.settings)
    yield from checkout.stale_code(seen.records, SourceTree(root))
    yield from checkout.other_packages(seen.records, locked)
    yield from checkout.mixed_machines(seen.records)


def verdict_on(seen: Evidence, findings: Iterable[Finding]) -> Verdict:
    """The findings, and how much was looked at."""
    size = sum(file.size for file in seen.files.values())
    return Verdict(seen.study, tuple(findings), len(seen.records), len(seen.files), size)

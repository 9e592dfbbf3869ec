"""What an audit finds: a stable code, where, what, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mechdistill.report.formats import count

CODES = {
    "MISSING": "a file that a job made or must make is not there",
    "TAMPERED": "a file holds other bytes than its job wrote",
    "LAUNDERED": "a file holds other bytes than its job wrote, and dvc.lock was made to fit",
    "SWAPPED": "a file holds the bytes that a job wrote to another file",
    "INCOMPLETE": "a job was cut off while it wrote",
    "ORPHAN": "a file that no job is known to have made",
    "NO-RECORD": "the record of the job that made a file is not there",
    "BAD-RECORD": "a record that cannot be read",
    "FOREIGN": "a record of another study, or of another job than its name says",
    "FORGED": "a record that contradicts itself or another record",
    "DISPUTED": "a record and Snakemake's own note on the same job differ",
    "NO-NOTE": "Snakemake's own note on a file is not there",
    "BROKEN-CHAIN": "a job read other bytes than the job before it wrote",
    "UNUSED": "a job of which nothing reaches the report",
    "STALE-PARAMETER": "a job ran with another value than the checkout has",
    "STALE-CODE": "a job ran other code than the checkout has",
    "HIDDEN-CODE": "a job ran code that its fingerprint does not cover",
    "ENVIRONMENT": "a job ran with a package of another version than the lock has",
    "MIXED-MACHINES": "jobs of one study ran on different kinds of machine or Python",
    "CLOCK": "a job ended before it started",
    "CELL": "a cell or line that the rows of single examples do not give",
    "FIGURE": "a figure that the rows of single examples do not give",
    "CANNOT-DERIVE": "a table or figure that cannot be made from what is there",
    "REPLAY": "a job run again wrote other bytes",
}
"""Code -> what it says. A code never changes its meaning."""


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        code: one of `CODES`.
        where: the file, relative to the repository, and the place in it after a colon.
        what: the fact.
        remedy: what to do, as an instruction.
    """

    code: str
    where: str
    what: str
    remedy: str

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(f"no finding is called {self.code}")

    def __str__(self) -> str:
        return f"{self.code}  {self.where}\n  {self.what}\n  What to do: {self.remedy}"


@dataclass(frozen=True)
class Verdict:
    """All that an audit of one study found, and how much it looked at.

    `members` are the verdicts on the studies that it joins; its own numbers are those of all.
    """

    study: str
    findings: Sequence[Finding]
    jobs: int
    files: int
    bytes: int
    seconds: float = 0.0
    members: Sequence[Verdict] = ()

    @classmethod
    def of(cls, study: str, parts: Sequence[Verdict], seconds: float = 0.0) -> Verdict:
        """That on a study from those on its members and, last, on itself alone."""
        return cls(
            study,
            tuple(finding for part in parts for finding in part.findings),
            sum(part.jobs for part in parts),
            sum(part.files for part in parts),
            sum(part.bytes for part in parts),
            seconds,
            tuple(parts[:-1]),
        )

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        members = {part.study: len(part.findings) for part in self.members}
        return {"clean": self.clean, **asdict(self), "members": members}

    @property
    def outcome(self) -> str:
        """`clean`, `2 findings`."""
        return "clean" if self.clean else count(len(self.findings), "finding")

    @property
    def looked(self) -> str:
        """At how much: `81 jobs, 203 files`."""
        return f"{count(self.jobs, 'job')}, {count(self.files, 'file')}"

    def __str__(self) -> str:
        size = f"{self.bytes / 1e6:.0f} MB, {self.seconds:.1f} s"
        last = f"audit of {self.study}: {self.outcome} ({self.looked}, {size})"
        return "\n".join([*map(str, self.findings), last])

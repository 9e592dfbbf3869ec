"""What a person is told while a study runs: which job of how many, time left, what went wrong."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import TextIO

from mechdistill import artifacts
from mechdistill.errors import InputError
from mechdistill.progress import duration

INTERRUPTED = 130
"""Exit status after a stop from outside, as shells have it."""
STOPPED = "Stopped. What was finished is kept: the same command goes on from here."
_STATS = "Job stats:"
_STATS_ROW = re.compile(r"^(\w+) +(\d+)$")
_PROGRESS = re.compile(r"\| .* \d+/\d+ \(\d+%\)")


class Teller:
    """Turns the lines of Snakemake and of its jobs into what a person wants to know.

    Args:
        out: where to tell.
        seconds: expected wall time of one job of each rule, for the time left.
        place: which study of several this is, such as `member 1 of 4`.
    """

    def __init__(self, out: TextIO, seconds: Mapping[str, float], place: str = "") -> None:
        self._out = out
        self._place = place
        self._seconds = seconds
        self._begin = self._plan_begin = time.monotonic()
        self._planned: Counter[str] = Counter()
        self._started = 0
        self._done: Counter[str] = Counter()
        self._worked = False
        self._failed: set[str] = set()
        self._failures: list[str] = []
        self._complaints: list[str] = []
        self._live = out.isatty()
        self._lock = threading.Lock()

    def begin(self, study: str, cores: int) -> None:
        """Said at once: Snakemake takes some seconds before the first job starts."""
        several = "" if cores == 1 else "s"
        place = f" ({self._place})" if self._place else ""
        self._tell(f"Study {study}{place} on {cores} core{several}: looking what there is to do")

    def tell_deleted(self, files: Sequence[str]) -> None:
        """What else is to do, now that the report stands."""
        also = f" and {len(files) - 1} more" if len(files) > 1 else ""
        self._tell(f"Deleted since they were made, and made again: {files[0]}{also}")

    def snakemake_line(self, line: str) -> None:
        """A line of Snakemake's standard error: read for the plan, else kept aside."""
        if line == _STATS:
            self._begin_plan()
        row = _STATS_ROW.match(line)
        if row and row[1] not in ("all", "report", "audit", "total"):
            self._planned[row[1]] = int(row[2])
        self._complaints.append(line)

    def job_line(self, line: str) -> None:
        """A line of a job (`train_student mech 0 | done in 3 s`)."""
        name, _, text = line.partition(" | ")
        rule = name.partition(" ")[0]
        if text == "started":
            self._started += 1
            self._worked = True
            place = f"{self._place}, " if self._place else ""
            line = f"[{place}{self._started}/{self._total()}] {line}"
        elif text.startswith("done in "):
            self._done[rule] += 1
            line = f"{line} ({self._position()})"
        elif text.startswith("FAILED") or (text.startswith("  ") and name in self._failed):
            self._failed.add(name)
            self._failures.append(line)
        self._tell(line, passing=_PROGRESS.search(line) is not None)

    def finish_targets(self, targets: Sequence[str]) -> None:
        """What was asked for is there."""
        self._tell(f"Up to date: {', '.join(targets)}")

    def finish(self, study: str, root: Path) -> None:
        """Where the time went, where the report is, and what it found."""
        took = duration(time.monotonic() - self._begin)
        if not self._worked:
            self._tell("Everything is up to date.")
        self._tell("")
        self._tell(f"Done in {took}. {stage_times(root, study)}")
        report = root / "results" / study / "report"
        findings = report / "findings.txt"
        if findings.is_file():
            self._tell("")
            self._tell(findings.read_text(encoding="utf-8").rstrip())
        self._tell("")
        self._tell(f"The report: {report / 'report.html'}")

    def fail(self, status: int, log: Path) -> None:
        """The one message that matters, last."""
        self._tell("")
        if status == INTERRUPTED:
            self._tell(STOPPED)
            return
        for line in self._failures or self._own_complaint():
            self._tell(line)
        self._tell("")
        self._tell(
            "What was finished is kept: when this is mended, the same command goes on from here. "
            f"(Snakemake's own output: {log})"
        )

    def _own_complaint(self) -> Iterable[str]:
        """What Snakemake said when it failed without a failed job."""
        text = "\n".join(self._complaints)
        if "No space left on device" in text:
            return [
                "FAILED: the disk is full",
                "  What to do: free some space and start the same command again",
            ]
        return self._complaints[-20:]

    def _begin_plan(self) -> None:
        """Snakemake was started, perhaps not for the first time, and tells what it will do."""
        self._plan_begin = time.monotonic()
        self._planned.clear()
        self._done.clear()
        self._started = 0

    def _total(self) -> int:
        return max(self._planned.total(), self._started)

    def _position(self) -> str:
        now = time.monotonic()
        place = f" of {self._place}" if self._place else ""
        words = [
            f"{self._done.total()} of {self._total()} jobs{place}",
            f"{duration(now - self._begin)} so far",
        ]
        left = self._seconds_left(now - self._plan_begin)
        return ", ".join([*words, f"about {duration(left)} left"] if left is not None else words)

    def _seconds_left(self, spent: float) -> float | None:
        """From the shares of the work done and to do, by the last run's times.

        A rule that did not run then counts as an average one.
        """
        if not self._seconds:
            return None
        average = fmean(self._seconds.values())
        done = sum(self._seconds.get(rule, average) * n for rule, n in self._done.items())
        whole = sum(self._seconds.get(rule, average) * n for rule, n in self._planned.items())
        return spent * (whole - done) / done if done > 0 else None

    def _tell(self, line: str, passing: bool = False) -> None:
        with self._lock:
            if not self._live:
                self._out.write(f"{line}\n")
            else:  # a line of progress is overwritten by what follows, so it must not wrap
                if passing:
                    line = line[: shutil.get_terminal_size().columns - 1]
                self._out.write(f"\r\x1b[K{line}" + ("" if passing else "\n"))
            self._out.flush()


def rule_seconds(root: Path, study: str) -> dict[str, float]:
    """Mean wall time of each rule's jobs in the last run that left records."""
    seconds = defaultdict(list)
    for path in (root / "provenance" / "runs" / study).glob("*.json"):
        try:
            record = artifacts.read_json(path)
        except InputError:  # an estimate is not worth a failure
            continue
        seconds[record["rule"]].append(record["wall_seconds"])
    return {rule: fmean(values) for rule, values in seconds.items()}


def stage_times(root: Path, study: str) -> str:
    """Time of the jobs by stage, first begun first, and the highest memory, from the records."""
    seconds: dict[str, float] = defaultdict(float)
    memory = 0
    records = map(artifacts.read_json, (root / "provenance" / "runs" / study).glob("*.json"))
    for record in sorted(records, key=itemgetter("started")):
        seconds[Path(record["outputs"][0]["path"]).parts[2]] += record["wall_seconds"]
        memory = max(memory, record["peak_memory_bytes"])
    stages = ", ".join(f"{stage} {duration(value)}" for stage, value in seconds.items())
    return f"Time of all jobs: {stages}. At most {memory / 2**20:.0f} MiB in one job."

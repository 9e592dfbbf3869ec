"""Run a study from nothing to its report and say how it goes: `python -m mechdistill.reproduce`.

Snakemake decides what to run and runs it. This driver starts it, numbers the jobs, estimates the
time left, keeps Snakemake's own output in a log, and ends with the findings or with the one
message that matters. Started again after any kind of stop, it goes on from there.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import IO, TextIO

import psutil

from mechdistill import artifacts
from mechdistill.errors import InputError
from mechdistill.progress import duration
from mechdistill.provenance.run import ONE_THREAD
from mechdistill.provenance.warm import ADDRESS, HEAVY
from mechdistill.study import BASE_FILE, load_study

INTERRUPTED = 130
PR_SET_PDEATHSIG = 1  # linux/prctl.h
PATIENCE = 20.0
"""Seconds that stopped jobs and Snakemake have to put their things away."""
_STATS_ROW = re.compile(r"^(\w+) +(\d+)$")
_PROGRESS = re.compile(r"\| .* \d+/\d+ \(\d+%\)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; exit status 0, 1 after an error, 130 when stopped."""
    parser = argparse.ArgumentParser(prog="python -m mechdistill.reproduce", description=__doc__)
    parser.add_argument("--study", help="name of an overlay in studies/ (default: params.yaml)")
    parser.add_argument("--cores", type=_at_least_one, default=len(os.sched_getaffinity(0)))
    parser.add_argument("targets", nargs="*", help="files to make (default: the whole study)")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    try:
        refuse_other_folder(root)
        overrides = {"study": options.study} if options.study else {}
        study = load_study(overrides, root).study
        refuse_second_run(root)
        return run(root, study, options.cores, options.targets)
    except InputError as error:
        print(f"{error}", file=sys.stderr)
        return 1


def run(root: Path, study: str, cores: int, targets: Sequence[str] = ()) -> int:
    """Run Snakemake on `study` and tell how it goes; its exit status."""
    command = [sys.executable, "-m", "snakemake", "--config", f"study={study}"]
    if any((root / ".snakemake" / "locks").glob("*")):  # left by a run that was killed
        subprocess.run([*command, "--unlock"], cwd=root, capture_output=True, check=False)
    log = root / "logs" / study / "snakemake.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    teller = Teller(sys.stdout, rule_seconds(root, study))
    teller.begin(study, cores)
    with log.open("w", encoding="utf-8") as kept, warm_process(root) as environment:
        process = subprocess.Popen(
            [*command, "--cores", str(cores), "--", *targets],
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,  # so that one signal reaches Snakemake and all its jobs
            preexec_fn=_end_with_driver,
        )
        status = _follow(process, teller, kept)
    if status == 0 and targets:
        teller.finish_targets(targets)
    elif status == 0:
        teller.finish(study, root)
    else:
        teller.fail(status, log.relative_to(root))
    return status


@contextmanager
def warm_process(root: Path) -> Iterator[dict[str, str]]:
    """A process that jobs are forked from, and the environment by which they find it."""
    with tempfile.TemporaryDirectory(prefix="mechdistill-") as folder:
        address = str(Path(folder) / "warm")
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        server = subprocess.Popen(
            [sys.executable, "-m", "mechdistill.provenance.warm", address, *HEAVY],
            cwd=root,
            env={**environment, **ONE_THREAD, "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=_end_with_driver,
        )
        try:
            yield {**environment, ADDRESS: address}
        finally:
            server.kill()
            server.wait()


def refuse_other_folder(root: Path) -> None:
    """Refuse to start where there is no workflow to run.

    Raises:
        InputError: `root` is no checkout of this project.
    """
    for name in ("Snakefile", BASE_FILE):
        if not (root / name).is_file():
            raise InputError(
                f"{root} is no checkout of mechdistill: it has no {name}",
                "start the same command in the folder of the checkout, which holds Snakefile, "
                f"{BASE_FILE} and Makefile",
            )


def refuse_second_run(root: Path) -> None:
    """Refuse to start beside another Snakemake at work in this folder.

    Raises:
        InputError: there is one.
    """
    for process in psutil.process_iter(["pid", "cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        is_snakemake = any(Path(word).name == "snakemake" for word in words[:3])
        if is_snakemake and process.info["cwd"] == str(root) and process.pid != os.getpid():
            raise InputError(
                f"a run is already at work in {root} (process {process.pid})",
                f"wait for it, or stop it: kill -INT {process.pid}",
            )


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


class Teller:
    """Turns the lines of Snakemake and of its jobs into what a person wants to know.

    Args:
        out: where to tell.
        seconds: expected wall time of one job of each rule, for the time left.
    """

    def __init__(self, out: TextIO, seconds: Mapping[str, float]) -> None:
        self._out = out
        self._seconds = seconds
        self._begin = time.monotonic()
        self._planned: Counter[str] = Counter()
        self._started = 0
        self._done: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._failures: list[str] = []
        self._complaints: list[str] = []
        self._live = out.isatty()
        self._lock = threading.Lock()

    def begin(self, study: str, cores: int) -> None:
        """Said at once: Snakemake takes some seconds before the first job starts."""
        several = "" if cores == 1 else "s"
        self._tell(f"Study {study} on {cores} core{several}: looking what there is to do")

    def snakemake_line(self, line: str) -> None:
        """A line of Snakemake's standard error: read for the plan, else kept aside."""
        row = _STATS_ROW.match(line)
        if row and row[1] not in ("all", "report", "total"):
            self._planned[row[1]] = int(row[2])
        self._complaints.append(line)

    def job_line(self, line: str) -> None:
        """A line of a job (`train_student mech 0 | done in 3 s`)."""
        name, _, text = line.partition(" | ")
        rule = name.partition(" ")[0]
        if text == "started":
            self._started += 1
            line = f"[{self._started}/{self._total()}] {line}"
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
        if not self._started:
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
            self._tell("Stopped. What was finished is kept: the same command goes on from here.")
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

    def _total(self) -> int:
        return max(self._planned.total(), self._started)

    def _position(self) -> str:
        spent = time.monotonic() - self._begin
        words = [f"{self._done.total()} of {self._total()} jobs", f"{duration(spent)} so far"]
        left = self._seconds_left(spent)
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


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} (allowed: a whole number of at least 1)")
    return int(text)


def _end_with_driver() -> None:
    """In the child: be killed when the driver dies, or Snakemake would hang on its broken pipes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _follow(process: subprocess.Popen[str], teller: Teller, kept: TextIO) -> int:
    """Tell the lines as they come; the exit status, 130 when stopped from outside."""
    stopped = threading.Event()

    def stop(*_: object) -> None:
        if stopped.is_set():
            return
        stopped.set()
        os.killpg(process.pid, signal.SIGINT)
        killing = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        killing.daemon = True
        killing.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)

    def read(lines: IO[str], tell: Callable[[str], None]) -> None:
        for line in lines:
            kept.write(line)
            kept.flush()
            tell(line.rstrip("\n"))

    assert process.stdout is not None
    assert process.stderr is not None
    errors = threading.Thread(target=read, args=(process.stderr, teller.snakemake_line))
    errors.start()
    read(process.stdout, teller.job_line)
    errors.join()
    status = process.wait()
    return INTERRUPTED if stopped.is_set() else min(abs(status), 1)


if __name__ == "__main__":
    sys.exit(main())

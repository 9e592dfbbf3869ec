"""Faults of the whole smoke study: it is cut off again and again, and ends as if it never were.

    python -m tests.workflow.faults                       30 kills, full disks, a second run
    python -m tests.workflow.faults --kills 3 --seed 1

An undisturbed run comes first. Then the study is run in another clone, and at seeded random moments
all its processes are killed at once (SIGKILL); the same command goes on. When it is through it
begins anew, until there were as many kills as asked for. At last its disk fills up, several times.
What is compared: the bytes of every result with those of the undisturbed run, and the records of
the jobs that had been finished at a kill, which no later run may have replaced.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from mechdistill.provenance.metadata import INCOMPLETE, METADATA, note_path
from tests.workflow.conftest import REPOSITORY, STUDY, Checkout, clone

TABLE = Path("docs", "reruns", "kills.csv")
RESULTS = Path("results", STUDY)
RECORDS = Path("provenance", "runs", STUDY)
MOST_STARTS = 8
WALL_TIMES = ("budget.json", "times.csv")
"""Results that hold the wall times of trainings."""
DRIVER = ("mechdistill.reproduce", "--study", STUDY)


@dataclass
class Kill:
    """What one kill met."""

    after: str
    """Job starts that were waited for, and seconds after the last."""
    at_work: list[str]
    """Jobs that had started and were not done."""
    finished: int
    """Jobs that were, by Snakemake's notes."""
    partial: int
    """Files that were being written."""
    redone: list[str] = field(default_factory=list)
    """Finished jobs whose record another run replaced all the same."""
    other_bytes: list[str] = field(default_factory=list)
    """Files of finished jobs that are not as the undisturbed run's."""


def digests(checkout: Checkout) -> dict[str, str]:
    """SHA-256 of every result but those that hold wall times."""
    results = checkout.root / RESULTS
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.name not in WALL_TIMES
    }


def at_work(checkout: Checkout) -> list[psutil.Process]:
    """Processes that still work in the checkout."""
    found = []
    for process in psutil.process_iter(["cwd"]):
        if process.info["cwd"] == str(checkout.root):
            found.append(process)
    return found


def kill_all(checkout: Checkout) -> None:
    """End every process of the checkout at once, as a power cut does."""
    while there := at_work(checkout):
        for process in there:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.05)  # psutil's wait would take the driver's exit status, and Popen then says 0


def finished_jobs(checkout: Checkout) -> dict[str, str]:
    """Jobs whose outputs Snakemake holds for whole, with the digest of the record of each."""
    jobs = {}
    for path in sorted((checkout.root / RECORDS).glob("*.json")):
        content = path.read_bytes()
        outputs = [Path(output["path"]) for output in json.loads(content)["outputs"]]
        noted = all(
            (checkout.root / out).is_file() and note_path(checkout.root / METADATA, out).is_file()
            for out in outputs
        )
        cut = any(note_path(checkout.root / INCOMPLETE, out).exists() for out in outputs)
        if noted and not cut:
            jobs[path.stem] = hashlib.sha256(content).hexdigest()
    return jobs


def outputs_of(checkout: Checkout, job: str) -> list[str]:
    """The outputs of a job without wall times, relative to the results."""
    record = json.loads((checkout.root / RECORDS / f"{job}.json").read_text(encoding="utf-8"))
    paths = [Path(output["path"]).relative_to(RESULTS) for output in record["outputs"]]
    return [str(path) for path in paths if path.name not in WALL_TIMES]


def unfinished(lines: Sequence[str]) -> list[str]:
    """Jobs that the driver's lines tell of as started and not as done."""
    running: dict[str, None] = {}
    for line in lines:
        name, _, text = line.rpartition("] ")[2].partition(" | ")
        if text.startswith("started"):
            running[name] = None
        elif text.startswith("done in"):
            running.pop(name, None)
    return list(running)


def run_until(checkout: Checkout, starts: int, seconds: float) -> tuple[list[str], bool]:
    """The driver's lines; all its processes are killed `seconds` after so many jobs have started.

    Returns:
        the lines, and whether the study was through before.
    """
    process = checkout.start(*DRIVER, "--cores", "2")
    fired = threading.Event()

    def strike() -> None:
        fired.set()
        kill_all(checkout)

    killer = threading.Timer(seconds, strike)
    lines = []
    assert process.stdout is not None
    if starts == 0:
        killer.start()
    for line in process.stdout:
        lines.append(line)
        if line.endswith(" | started\n"):
            starts -= 1
            if starts == 0:
                killer.start()
    status = process.wait()
    killer.cancel()
    if killer.ident is not None:
        killer.join()
    assert status == 0 or fired.is_set(), "".join(lines)
    return lines, status == 0


def look(checkout: Checkout, after: str, lines: Sequence[str], whole: dict[str, str]) -> Kill:
    """What a kill left."""
    jobs = finished_jobs(checkout)
    now = digests(checkout)
    names = [name for job in jobs for name in outputs_of(checkout, job)]
    other = [name for name in names if now.get(name) != whole[name]]
    partial = sum(path.name.startswith(".") for path in (checkout.root / RESULTS).rglob("*"))
    return Kill(after, unfinished(lines), len(jobs), partial, other_bytes=other)


def start_anew(checkout: Checkout) -> None:
    """Forget everything that runs have left."""
    for path in (RESULTS, RECORDS, Path("checkpoints"), INCOMPLETE, Path("logs", STUDY)):
        shutil.rmtree(checkout.root / path, ignore_errors=True)
    for note in (checkout.root / METADATA).resolve().iterdir():
        if note.name != ".gitkeep":
            note.unlink()


def killed(
    checkout: Checkout, whole: dict[str, str], times: int, most_starts: int, seed: int
) -> Iterator[tuple[list[Kill], bool]]:
    """The kills of each time that the study was brought to its end, and whether it ended well.

    Args:
        whole: digests of the undisturbed run's results.
        times: kills in all.
        most_starts: each kill waits for 0 to so many job starts, and then for 0 to 4 seconds.
        seed: of the moments.
    """
    draw = random.Random(seed)
    left = times
    while left:
        kills: list[Kill] = []
        kept: list[dict[str, str]] = []
        done = False
        while not done:
            starts, seconds = draw.randint(0, most_starts), draw.uniform(0, 4)
            if not starts:  # while Snakemake plans
                seconds *= 3
            lines, done = run_until(checkout, starts if left else sys.maxsize, seconds)
            jobs = finished_jobs(checkout)
            for kill, before in zip(kills, kept, strict=True):
                gone = [job for job, digest in before.items() if jobs.get(job) != digest]
                kill.redone = sorted({*kill.redone, *gone})
            if not done:
                left -= 1
                after = f"{starts} starts and {seconds:.1f} s"
                kills.append(look(checkout, after, lines, whole))
                kept.append(jobs)
                print(f"{times - left} of {times}: {kills[-1]}", flush=True)
        yield kills, digests(checkout) == whole
        if left:
            start_anew(checkout)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk of its own (tmpfs); only root may mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def full_disks(folder: Path, whole: dict[str, str], seed: int, times: int = 4) -> list[str]:
    """The study on a disk that is full after some more kilobytes, again and again; what was said.

    Everything lies on it: results, logs, records, Snakemake's own notes.
    """
    draw = random.Random(seed)
    said = []
    with small_disk(folder, 400) as disk:
        checkout = clone(disk / "mechdistill")
        ballast = disk / "ballast"
        for number in range(times + 1):
            if number < times:
                room = draw.randrange(0, 1_500_000)
                free = shutil.disk_usage(disk).free
                ballast.write_bytes(b"\0" * max(0, free - room))
            done = checkout.run(*DRIVER, "--cores", "2")
            ballast.unlink(missing_ok=True)
            last = [line for line in done.stdout.splitlines() if "FAILED" in line]
            trace = "Traceback" in done.stdout
            said.append(f"exit status {done.returncode}, {last}{', TRACEBACK' * trace}")
            print(said[-1], flush=True)
            if trace or (number == times and done.returncode):
                print(done.stdout, flush=True)
        same = digests(checkout) == whole
        said.append(f"in the end as undisturbed: {same}")
    return said


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--undisturbed", type=Path, help="a clone in which smoke is finished")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        undisturbed = Checkout(options.undisturbed or clone(folder / "undisturbed").root)
        done = undisturbed.run(*DRIVER, "--cores", "2")
        assert done.returncode == 0, done.stdout
        whole = digests(undisturbed)
        print(f"undisturbed: {len(whole)} files to compare", flush=True)
        kills, well = [], True
        for some, same in killed(
            clone(folder / "killed"), whole, options.kills, MOST_STARTS, options.seed
        ):
            kills += some
            well &= same and not any(kill.redone or kill.other_bytes for kill in some)
            print(f"{len(some)} kills, then as undisturbed: {same}", flush=True)
        write(REPOSITORY / TABLE, kills)
        if os.geteuid() == 0:
            well &= full_disks(folder / "disk", whole, options.seed)[-1].endswith("True")
    return int(not well)


def write(path: Path, kills: Sequence[Kill]) -> None:
    """The table of docs/reruns.md."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("kill", "after", "at work", "finished", "redone", "other bytes"))
        for number, kill in enumerate(kills, start=1):
            redone, other = len(kill.redone), len(kill.other_bytes)
            work = ", ".join(kill.at_work)
            table.writerow([number, kill.after, work, kill.finished, redone, other])


if __name__ == "__main__":
    sys.exit(main())

"""Run the script of a rule and leave a record of it.

`python -m mechdistill.provenance.run --params JSON --log logs/STUDY/JOB.log ... -- SCRIPT ...`
starts `SCRIPT ... --params JSON`, shows its output line by line under the job's name, keeps it in
the log, checks that every output was written, and writes `provenance/runs/STUDY/JOB.json`.
A job that fails says one thing: what, and what to do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import RawIOBase
from pathlib import Path
from types import FrameType
from typing import Any

import psutil

from mechdistill import artifacts
from mechdistill.errors import InputError
from mechdistill.progress import duration
from mechdistill.provenance import record
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.script import INTERRUPTED
from mechdistill.provenance.warm import ADDRESS, WarmScript

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)
"""Environment of a process whose libraries compute in one thread."""
PROGRESS = re.compile(
    r"[a-z][a-z -]{0,40} \d+(/\d+( \(\d+%\))?)?(, [\d.]+(/s| s each))?"
    r"(, (\d+ (h|min|s) ?)+( left)?)?"
)
"""A line of `mechdistill.progress`."""
COUNT = re.compile(r"[\w/:(),. -]{1,90}: \d+( \(published: \d+\))?|note: [^'\"]{1,300}")
"""A line of `check_source`; its notes name files and columns, and quote nothing."""
PATIENCE = 5.0
"""Seconds that a stopped script has to end by itself."""


@dataclass(frozen=True)
class Job:
    """One job as the rule describes it."""

    params: str
    code: str
    also: Sequence[str]
    inputs: Sequence[str]
    outputs: Sequence[str]
    log: Path
    threads: int
    restricted: bool
    script: str
    arguments: Sequence[str]

    @property
    def rule(self) -> str:
        """The rule is called as its script."""
        return Path(self.script).stem

    @property
    def study(self) -> str:
        """The folder of the log is called as the study."""
        return self.log.parent.name

    @property
    def label(self) -> str:
        """Name for people, from the log's: `train_student mech-0`."""
        wildcards = self.log.stem.removeprefix(self.rule).removeprefix("-")
        return f"{self.rule} {wildcards}".strip()

    @property
    def record(self) -> Path:
        """Where the record goes."""
        return record.record_path(self.log)


class Interrupted(Exception):
    """Ctrl-C, a termination signal, or the end of the process that waits for this one."""


def main(arguments: Sequence[str]) -> int:
    """Run one job; exit status 0, 1 after an error, 130 when interrupted."""
    job, above = parse(arguments), _Above()
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("wb", buffering=0) as log:  # unbuffered: a full disk shows at once
        try:
            run(job, log, above)
        except InputError as error:
            say(job, log, f"FAILED: {error.what}")
            say(job, log, f"  What to do: {error.remedy}")
            say(job, log, f"  Log: {job.log}")
            return 1
        except (Interrupted, KeyboardInterrupt):  # the latter before the script was started
            say(job, log, "stopped; its unfinished outputs are dropped, finished jobs are kept")
            return INTERRUPTED
    return 0


def parse(arguments: Sequence[str]) -> Job:
    """The job of a command line."""
    parser = argparse.ArgumentParser(prog="python -m mechdistill.provenance.run")
    parser.add_argument("--params", required=True, help="JSON object: the parameters of the job")
    parser.add_argument("--code", required=True, help="fingerprint that the rule carries")
    parser.add_argument("--also", nargs="*", default=[], help="files imported by a computed name")
    parser.add_argument("--inputs", nargs="*", default=[])
    parser.add_argument("--outputs", nargs="+", required=True)
    parser.add_argument("--log", type=Path, required=True, help="logs/STUDY/JOB.log")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--restricted",
        action="store_true",
        help="pass on lines of progress and counts alone, and no message of a library",
    )
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    own, command = arguments[:end], arguments[end + 1 :]
    parsed = parser.parse_args(own)
    if not command:
        parser.error("the script is missing: end with -- SCRIPT ARGUMENT ...")
    return Job(**vars(parsed), script=command[0], arguments=command[1:])


def run(job: Job, log: RawIOBase, above: _Above) -> None:
    """Run the script of `job` and write the record.

    Raises:
        InputError: anything that a person should know: what, and what to do.
        Interrupted: the job was stopped from outside.
    """
    root = Path.cwd()
    say(job, log, "started")
    _clear(job)
    code = SourceTree(root).fingerprint(job.script, *job.also)
    if code.digest != job.code:
        raise InputError(
            f"the code of {job.script} changed after the workflow had started",
            "start the same command again: the changed code is then taken into account",
        )
    inputs = record.describe_files(job.inputs)
    started = datetime.now(UTC)
    clock = time.monotonic()
    report = _run_script(job, log, above)
    wall = time.monotonic() - clock
    for output in job.outputs:
        if not Path(output).is_file():
            raise InputError(
                f"{job.script} ended without writing {output}",
                "this is a fault of the program, please report it with the log",
            )
    parameters = json.loads(job.params)
    content = {
        "study": job.study,
        "rule": job.rule,
        "job": job.label,
        "command": [job.script, *job.arguments],
        "parameters": parameters,
        "unread_parameters": report["unread_parameters"],
        "code": {
            "fingerprint": code.digest,
            "files": code.files,
            # their changes would go unseen: the rule must name them with --also
            "not_in_fingerprint": [path for path in report["modules"] if path not in code.files],
        },
        "inputs": inputs,
        "outputs": record.describe_files(job.outputs),
        "git": record.git_state(root),
        "environment": record.environment(root),
        "services": report["services"],
        "accelerator": report["accelerator"],
        "precision": report["precision"],
        "seeds": record.seeds(parameters, job.arguments),
        "host": socket.gethostname(),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
        "threads": job.threads,
        "started": started.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "wall_seconds": round(wall, 2),
        "cpu_seconds": report["cpu_seconds"],
        "peak_memory_bytes": report["peak_memory_bytes"],
    }
    artifacts.write_json(job.record, content)
    memory = report["peak_memory_bytes"] / 2**20
    say(job, log, f"done in {duration(wall)}, at most {memory:.0f} MiB")


def _clear(job: Job) -> None:
    """Drop the record of outputs that are being replaced, and what a killed run left half done."""
    job.record.unlink(missing_ok=True)
    for output in map(Path, job.outputs):
        for partial in output.parent.glob(artifacts.partial_name(output, "*")):
            partial.unlink(missing_ok=True)


def say(job: Job, log: RawIOBase, text: str) -> None:
    """One line to the terminal, under the job's name, and to the log."""
    _show(f"{job.label} | {text}\n")
    try:
        log.write(f"{text}\n".encode())
    except OSError as error:  # a full disk must not hide the message about it
        _show(f"{job.label} | (the log could not be written: {error.strerror})\n")


def _show(line: str) -> None:
    """In one write: jobs side by side share the terminal, and their lines must not mix."""
    os.write(sys.stdout.fileno(), line.encode())


def _run_script(job: Job, log: RawIOBase, above: _Above) -> dict[str, Any]:
    """Start the script, pass its output on, and return what it reports."""
    with tempfile.TemporaryDirectory(prefix="mechdistill-") as folder:
        report = Path(folder) / "report.json"
        arguments = [str(report), job.script, *job.arguments, "--params", job.params]
        child = start_script(arguments, os.environ, job.threads, Path.cwd())
        assert child.stdout is not None
        with _stopping(child, above) as stopped:
            for line in child.stdout:
                if not job.restricted or harmless(line.rstrip("\n")):
                    say(job, log, line.rstrip("\n"))
            status = child.wait()
        if stopped() or status == INTERRUPTED:
            raise Interrupted
        content = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else None
    if content is None or status < 0:
        raise InputError(*_explain_end(status))
    failure = content["failure"]
    if failure is not None:
        if job.restricted:
            failure |= failure.get("without_message", {})
        log.write(failure.get("traceback", "").encode())
        raise InputError(failure["what"], failure["remedy"])
    return dict(content)


def harmless(line: str) -> bool:
    """Whether a line of a script on restricted data may be seen: progress, a count, or a note.

    Whatever a library prints may hold text of the data.

    >>> harmless("training step 120/400 (30%), 3.2/s, 1 min 27 s left")
    True
    >>> harmless("Token indices of 'Mrs Marrow, 81' are too long")
    False
    """
    return PROGRESS.fullmatch(line) is not None or COUNT.fullmatch(line) is not None


def start_script(
    arguments: Sequence[str], environment: Mapping[str, str], threads: int, folder: Path
) -> subprocess.Popen[str] | WarmScript:
    """A script's process in `folder`: forked from a warm one that `environment` names, else new.

    Args:
        arguments: of `mechdistill.provenance.script`: report, script, what the script gets.
        environment: beside what the rule granted.
        threads: what the rule granted.
        folder: where the script runs.
    """
    environment = {**environment, **_granted(threads)}
    address = environment.get(ADDRESS)
    if address and threads == 1:  # the warm process has one thread's libraries
        with contextlib.suppress(OSError):  # still importing, or gone
            return WarmScript(address, arguments, environment, folder)
    return subprocess.Popen(
        [sys.executable, "-m", "mechdistill.provenance.script", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env=environment,
        cwd=folder,
    )


def _granted(threads: int) -> dict[str, str]:
    """What the rule granted, whatever the machine offers: results must not depend on it."""
    return {
        **dict.fromkeys(ONE_THREAD, str(threads)),
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _explain_end(status: int) -> tuple[str, str]:
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    what = f"the script was ended by {name} before it was done"
    if status == -signal.SIGKILL:
        return what, (
            "if the memory was full, close other programs or run with --cores 1; "
            "then start the same command again"
        )
    return what, "start the same command again; if it happens again, report it with the log"


class _stopping:
    """Within the block, an interrupt or the end of the waiting process stops the child."""

    def __init__(self, child: subprocess.Popen[str] | WarmScript, above: _Above) -> None:
        self._child = child
        self._above = above
        self._stopped = False
        self._over = threading.Event()

    def __enter__(self) -> Callable[[], bool]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        threading.Thread(target=self._watch, daemon=True).start()
        return lambda: self._stopped

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        if self._stopped:
            return
        self._stopped = True
        self._child.send_signal(signal.SIGINT)  # lets the script put its temporary files away
        killing = threading.Timer(PATIENCE, self._child.kill)
        killing.daemon = True
        killing.start()

    def _watch(self) -> None:
        """Snakemake killed with -9 leaves its jobs running: they end themselves."""
        while not self._over.wait(0.5):
            if self._above.is_gone():
                self._stop()
                return


class _Above:
    """What waits for this job, looked up as it begins: it can be killed before the script starts."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._snakemake = _snakemake_above()

    def is_gone(self) -> bool:
        """Whether the parent or Snakemake has ended."""
        if os.getppid() != self._parent:
            return True
        return self._snakemake is not None and _has_ended(self._snakemake)


def _has_ended(process: psutil.Process) -> bool:
    """Also where its parent has not asked for its status: the driver first reads all that jobs say."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _snakemake_above() -> psutil.Process | None:
    """The nearest ancestor that is Snakemake; None when run by hand."""
    for process in psutil.Process().parents():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if any(Path(word).name == "snakemake" for word in words[:3]):
            return process
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

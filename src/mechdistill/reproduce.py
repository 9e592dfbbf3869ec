"""Run a study from nothing to its report and say how it goes: `python -m mechdistill.reproduce`.

Snakemake decides what to run and runs it. This driver starts it, numbers the jobs, estimates the
time left, keeps Snakemake's own output in a log, and ends with the findings or with the one
message that matters. Started again after any kind of stop, it goes on from there.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import IO

import psutil

from mechdistill.artifacts import RESULTS
from mechdistill.errors import InputError
from mechdistill.joined_study import JoinedStudy, is_joined, load_joined_study
from mechdistill.provenance.run import ONE_THREAD
from mechdistill.provenance.warm import ADDRESS, HEAVY
from mechdistill.provenance.writable import refuse_unwritable
from mechdistill.study import load_study
from mechdistill.study_files import BASE_FILE
from mechdistill.teller import INTERRUPTED, STOPPED, Teller, rule_seconds

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOCK = Path(".snakemake", "driver.lock")
PATIENCE = 20.0
"""Seconds that stopped jobs and Snakemake have to put their things away."""


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
        if is_joined(overrides, root):
            joined = load_joined_study(overrides, root)
            for name in (*(member.name for member in joined.members), joined.study):
                refuse_unwritable(root, name)
            with only_run(root):
                return run_joined(root, joined, options.cores, options.targets)
        study = load_study(overrides, root).study
        refuse_unwritable(root, study)
        with only_run(root):
            return run(root, study, options.cores, options.targets)
    except InputError as error:
        print(f"{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while no Snakemake was at work
        print(f"\n{STOPPED}")
        return INTERRUPTED


def run_joined(root: Path, joined: JoinedStudy, cores: int, targets: Sequence[str] = ()) -> int:
    """Run every member in turn, then the joined report (of `targets`, those alone).

    A member that fails does not keep the others from being made; one that cannot be had here is
    left out.

    Returns:
        exit status: 1 where a member failed, 130 when stopped.

    Raises:
        InputError: no member can be had here.
    """
    if targets:
        return run(root, joined.study, cores, targets)
    left_out = joined.left_out_here(root)
    joined.without(left_out)
    failed = []
    for number, member in enumerate(joined.members, start=1):
        place = f"member {number} of {len(joined.members)}"
        if member.name in left_out:
            print(f"{place}, {member.name}, is left out: {left_out[member.name]}\n", flush=True)
            continue
        status = run(root, member.name, cores, place=place)
        print(flush=True)
        if status == INTERRUPTED:
            return status
        failed += [member.name] if status else []
    if failed:
        print(f"FAILED: {', '.join(failed)} of {joined.study}; the joined report needs them all.")
        return 1
    return run(root, joined.study, cores)


def run(root: Path, study: str, cores: int, targets: Sequence[str] = (), place: str = "") -> int:
    """Run Snakemake on `study` and tell how it goes; its exit status.

    Args:
        place: which study of several it is, for people.
    """
    command = [sys.executable, "-m", "snakemake", "--config", f"study={study}"]
    if any((root / ".snakemake" / "locks").glob("*")):  # left by a run that was killed
        subprocess.run([*command, "--unlock"], cwd=root, capture_output=True, check=False)
    log = root / "logs" / study / "snakemake.log"
    make_folder(log.parent)
    teller = Teller(sys.stdout, rule_seconds(root, study), place)
    teller.begin(study, cores)
    with log.open("wb", buffering=0) as kept, warm_process(root) as environment:

        def make(*files: str) -> int:
            arguments = [*command, "--cores", str(cores), "--", *files]
            return _follow(_start(arguments, root, environment), teller, kept)

        from_nothing = not (root / RESULTS / study).exists()
        status = make(*targets)
        if status == 0 and not targets and not from_nothing:
            deleted = deleted_results(command, root)
            if deleted:  # then once more the whole: their bytes may be others than before
                teller.tell_deleted(deleted)
                status = make(*deleted) or make()
    if status == 0 and targets:
        teller.finish_targets(targets)
    elif status == 0:
        teller.finish(study, root)
    else:
        teller.fail(status, log.relative_to(root))
    return status


def deleted_results(command: Sequence[str], root: Path) -> list[str]:
    """Files of a finished study that are not there.

    Snakemake leaves a file missing when all that is made from it is up to date. Asked for it by
    name it makes that file and nothing else anew; were it an input of the default target, all
    jobs behind it would run again, though the same bytes come back.

    Raises:
        InputError: Snakemake cannot tell.
    """
    asked = subprocess.run(
        [*command, "--summary"], cwd=root, capture_output=True, text=True, check=False
    )
    if asked.returncode:
        said = (asked.stderr.strip() or "it said nothing").splitlines()[-1]
        raise InputError(
            f"Snakemake could not list the files of the study: {said}",
            "start the same command again; what was finished is kept",
        )
    rows = (line.split("\t") for line in asked.stdout.splitlines())
    return [row[0] for row in rows if row[-2:-1] == ["missing"]]


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


@contextmanager
def only_run(root: Path) -> Iterator[None]:
    """Within the block no other driver works in this folder; the system ends that however it ends.

    Snakemake's own lock is not enough: after a killed run it has to be broken, and of two drivers
    started together the second would break that of the first.

    Raises:
        InputError: there is one, or a Snakemake started by hand; the folder cannot be written.
    """
    refuse_second_run(root)
    make_folder(root / ".snakemake")
    with (root / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"a run is already at work in {root}", "wait for it, or stop it with Ctrl-C there"
            ) from error
        except OSError:  # some network disks have no locks
            pass
        yield


def make_folder(folder: Path) -> None:
    """Make a folder that runs write to.

    Raises:
        InputError: the disk does not let it be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}",
            "free some space, or make the checkout writable; then start the same command again",
        ) from error


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


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} (allowed: a whole number of at least 1)")
    return int(text)


def _end_with_driver() -> None:
    """In the child: be killed when the driver dies, or Snakemake would hang on its broken pipes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _start(
    command: Sequence[str], root: Path, environment: Mapping[str, str]
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,  # so that one signal reaches Snakemake and all its jobs
        preexec_fn=_end_with_driver,
    )


def _follow(process: subprocess.Popen[str], teller: Teller, kept: RawIOBase) -> int:
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

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}

    def read(lines: IO[str], tell: Callable[[str], None]) -> None:
        for line in lines:
            with suppress(OSError):  # a full disk: who stopped reading would stop Snakemake too
                kept.write(line.encode())
            tell(line.rstrip("\n"))

    assert process.stdout is not None
    assert process.stderr is not None
    errors = threading.Thread(target=read, args=(process.stderr, teller.snakemake_line))
    errors.start()
    read(process.stdout, teller.job_line)
    errors.join()
    status = process.wait()
    for number, handler in before.items():  # the process group is gone
        signal.signal(number, handler)
    return INTERRUPTED if stopped.is_set() else min(abs(status), 1)


if __name__ == "__main__":
    sys.exit(main())

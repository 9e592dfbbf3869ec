"""A script that runs in several processes at once: one a GPU, started by torchrun."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from mechdistill.errors import InputError

FAILURE, LAUNCHER = "MECHDISTILL_FAILURE", "MECHDISTILL_LAUNCHER"
"""Environment of a process: where it says what went wrong, and who waits for it."""
PATIENCE = 4.0
"""Seconds that torchrun has to end its processes, below the run wrapper's own."""


@dataclass(frozen=True)
class Process:
    """One of the processes of a run."""

    number: int
    """From 0, over all machines."""
    count: int

    @classmethod
    def here(cls) -> Process | None:
        """As torchrun says; None where it has not started this process."""
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            return None
        return cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


def launch(command: Sequence[str]) -> None:
    """Run a script with its arguments in one process for each GPU that is visible, or in one.

    Raises:
        InputError: a process failed: with what it said.
    """
    count = max(1, torch.cuda.device_count())
    starter = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    with tempfile.TemporaryDirectory(prefix="mechdistill-") as folder:
        failure = Path(folder) / "failure.json"
        environment = {
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # torch's deterministic products ask for it
            **os.environ,
            FAILURE: str(failure),
            LAUNCHER: str(os.getpid()),
        }
        child = subprocess.Popen([sys.executable, "-m", *starter, *command], env=environment)
        try:
            status = child.wait()
        finally:
            _end(child)
        if failure.exists():
            raise InputError(**json.loads(failure.read_text(encoding="utf-8")))
    if status:
        raise InputError(
            f"a process of the training ended with status {status} before it was done",
            "see the lines above it in the log; start the same command again, and it goes on from "
            "the last checkpoint",
        )


@contextlib.contextmanager
def among_others() -> Iterator[None]:
    """Within the block this process is one of several: it ends when who waits for it has ended,
    and an error that people should know is told there.
    """
    waiting = os.environ.get(LAUNCHER)
    if waiting is not None:
        threading.Thread(target=_end_with, args=(int(waiting),), daemon=True).start()
    try:
        yield
    except InputError as error:
        if FAILURE in os.environ:
            path = Path(os.environ[FAILURE])
            text = json.dumps({"what": error.what, "remedy": error.remedy})
            own = path.with_suffix(f".{os.getpid()}")
            own.write_text(text, encoding="utf-8")
            own.replace(path)
        raise
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _end_with(launcher: int) -> None:
    """A launcher that was killed cannot end its processes: two runs would write one checkpoint."""
    try:
        process = psutil.Process(launcher)
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.3)
    except psutil.NoSuchProcess:
        pass
    os._exit(1)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

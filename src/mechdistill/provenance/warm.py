"""Start scripts from a process that has imported the heavy libraries already.

Importing torch and transformers takes seconds of a core, more than many a job of a small study
needs for its work, and a study has dozens of jobs. `python -m mechdistill.provenance.warm SOCKET
MODULE ...` imports them once and then forks itself for every job that asks. It imports no module
whose source a job could change, and computes nothing, so that a forked script finds what a fresh
process would. The driver starts it; without it, jobs start from nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from mechdistill.provenance import script

ADDRESS = "MECHDISTILL_WARM"
"""Environment variable that holds the path of the server's socket."""

HEAVY = (
    *("torch", "transformers.models.llama.modeling_llama", "transformers.tokenization_utils_base"),
    *("pandas", "pyarrow.parquet", "safetensors.torch", "scipy.stats", "matplotlib.figure"),
)

_PART = 1 << 16
"""Bytes of a request read at a time; a request ends with a newline."""


def serve(address: str, modules: Sequence[str]) -> None:
    """Import `modules`, then fork a script for every connection, until killed."""
    for name in modules:
        with contextlib.suppress(ImportError):  # the script that needs it will say so
            importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended scripts need no wait
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _run(connection)


def _run(connection: socket.socket) -> None:
    """In the forked process: become the script that the connection asks for; never returns."""
    status = 1
    try:
        message, files, _, _ = socket.recv_fds(connection, _PART, 1)
        while not message.endswith(b"\n"):
            message += connection.recv(_PART)
        request = json.loads(message)
        connection.sendall(f"{os.getpid()}\n".encode())
        for target in (1, 2):
            os.dup2(files[0], target)
        os.close(files[0])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        importlib.invalidate_caches()  # sources may have changed since the imports
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        status = script.main(request["arguments"])
        connection.sendall(f"{status}\n".encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_with(connection: socket.socket) -> None:
    """End when the wrapper does, however it ended: its end of the connection closes."""
    select.select([connection], [], [])
    os._exit(1)


class WarmScript:
    """A script forked from the server at `address`, handled like a `subprocess.Popen`.

    Raises:
        OSError: there is no server.
    """

    def __init__(
        self, address: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
    ) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        reading, writing = os.pipe()
        request = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
        }
        socket.send_fds(self._connection, [f"{json.dumps(request)}\n".encode()], [writing])
        os.close(writing)
        self.stdout: IO[str] = os.fdopen(reading, encoding="utf-8", errors="replace")
        self._answers = self._connection.makefile("r")
        self.pid = int(self._answers.readline())

    def send_signal(self, number: int) -> None:
        """Send a signal to the script, if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the script."""
        self.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        """Exit status of the script; as of a killed process when it said none."""
        answer = self._answers.readline()
        return int(answer) if answer else -signal.SIGKILL


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])

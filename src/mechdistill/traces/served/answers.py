"""Finished answers in a file that only grows: a job that was killed asks for the others alone."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class AnswerFile:
    """JSON lines: whose answers these are, then each server that was asked and its answers.

    A line that was cut off, and whatever follows it, is dropped. Threads may add answers.
    """

    def __init__(self, path: Path, identity: str) -> None:
        """Open the answers of a run; those of another run (`identity`) are replaced."""
        self._path = path
        self._lock = threading.Lock()
        self._answers: dict[str, list[int]] = {}
        self.servers: list[dict[str, Any]] = []
        """Each server that was asked, in this run or an earlier one, and how many it answered."""
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = self._read(identity) if path.exists() else 0
        with path.open("ab") as file:
            file.truncate(whole)
        if not whole:
            self._append({"identity": identity})

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, prompt: Sequence[int]) -> list[int] | None:
        """Tokens of the answer to a prompt's tokens, None where there is none."""
        return self._answers.get(_digest(prompt))

    def note_server(self, facts: Mapping[str, Any]) -> None:
        """Answers that are added from now on are this server's."""
        with self._lock:
            self._take({"server": dict(facts)})
            self._append({"server": dict(facts)})

    def add(self, prompt: Sequence[int], tokens: Sequence[int]) -> None:
        """Keep an answer."""
        line = {"prompt": _digest(prompt), "tokens": list(tokens)}
        with self._lock:
            self._append(line)
            self._take(line)

    def discard(self) -> None:
        """Remove the file: its answers are saved elsewhere."""
        self._path.unlink(missing_ok=True)

    def _read(self, identity: str) -> int:
        """Take up the whole lines of the file; gives their length in bytes."""
        whole = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file):
                try:
                    content = json.loads(line)
                    if not line.endswith(b"\n"):
                        break
                    if number:
                        self._take(content)
                    elif content["identity"] != identity:
                        print(f"{self._path} belongs to another run: asked anew", file=sys.stderr)
                        break
                except (ValueError, KeyError, TypeError):
                    break
                whole += len(line)
        return whole

    def _take(self, line: Mapping[str, Any]) -> None:
        if "server" in line:
            self.servers.append({**line["server"], "answers": 0})
        else:
            self._answers[line["prompt"]] = line["tokens"]
            self.servers[-1]["answers"] += 1

    def _append(self, line: Mapping[str, Any]) -> None:
        """In one write, so that a kill leaves at most one line unfinished."""
        with self._path.open("ab", buffering=0) as file:
            file.write(f"{json.dumps(line)}\n".encode())


def _digest(prompt: Sequence[int]) -> str:
    return hashlib.sha256(json.dumps(list(prompt)).encode()).hexdigest()

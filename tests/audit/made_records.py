"""Records of invented jobs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from mechdistill.audit.record import Record


def a_record(rule: str, **changes: Any) -> Record:
    """A record of one job without inputs; `changes` are of its facts or of its machine."""
    machine = {"python": "3.11", "platform": "l", "processor": "x86_64", "packages": {}}
    content = {
        "path": f"provenance/runs/tiny/{rule}.json",
        "study": "tiny",
        "rule": rule,
        "job": rule,
        "command": [f"workflow/scripts/{rule}.py", f"results/tiny/{rule}.csv"],
        "parameters": {},
        "code": {"fingerprint": "f00", "files": {"a.py": "b"}, "not_in_fingerprint": []},
        "inputs": [],
        "outputs": [{"path": f"results/tiny/{rule}.csv", "sha256": "0" * 64, "bytes": 1}],
        "git": {"commit": "c0ffee", "dirty": False},
        "environment": machine | {k: v for k, v in changes.items() if k in (*machine, "cpu")},
        "threads": 1,
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:00:01+00:00",
    }
    return Record.model_validate(content | {k: v for k, v in changes.items() if k not in machine})


def write_job(
    root: Path, rule: str, inputs: list[str], outputs: list[str], study: str = "tiny", **parameters
) -> None:
    """The record of a job that read and wrote the files which lie there."""

    def described(paths: list[str]) -> list[dict[str, object]]:
        return [
            {
                "path": path,
                "sha256": hashlib.sha256((root / path).read_bytes()).hexdigest(),
                "bytes": (root / path).stat().st_size,
            }
            for path in paths
        ]

    record = a_record(
        rule,
        study=study,
        command=[f"workflow/scripts/{rule}.py", *outputs],
        parameters=parameters,
        inputs=described(inputs),
        outputs=described(outputs),
    )
    file = root / "provenance/runs" / study / f"{rule}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    content = record.model_dump(mode="json", by_alias=True, exclude={"path"})
    file.write_text(json.dumps(content), encoding="utf-8")

"""The official validator of RO-Crates, in its own environment and without a network."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / ".venv-validator"
PROFILES = "provenance-run-crate-0.5"
"""It stands on all the others: RO-Crate 1.1, Workflow RO-Crate, Process and Workflow Run Crate."""


def complaints(crate: Path, report: Path) -> list[str]:
    """What the validator says against a crate; skips the test where it is not installed.

    Args:
        report: a file to be written.
    """
    program = FOLDER / "bin/rocrate-validator"
    if not program.is_file():
        pytest.skip("no validator of RO-Crates here: make validator")
    command = [str(program), "--no-interactive", "validate", "--offline", "--no-paging"]
    command += ["--cache-path", str(FOLDER / "context"), "--output-format", "json"]
    command += ["--profile-identifier", PROFILES, "--output-file", str(report), str(crate)]
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert report.is_file(), done.stdout + done.stderr
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["passed"] == (done.returncode == 0) == (not said["issues"])
    return [issue["message"] for issue in said["issues"]]

"""A job sees that the Snakemake which waits for it was killed."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil

from mechdistill.provenance.run import _has_ended


def test_a_killed_process_has_ended_before_and_after_its_parent_asks_for_its_status() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process = psutil.Process(child.pid)
    assert not _has_ended(process)
    process.kill()
    deadline = time.monotonic() + 30
    while not _has_ended(process):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert child.returncode is None  # nobody has asked
    child.wait()
    assert _has_ended(process)

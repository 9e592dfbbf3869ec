"""Jobs that a run which was killed has left in a cluster's queue."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from mechdistill.errors import InputError

PATIENCE = 60
"""Seconds that a busy scheduler has to answer."""


def refuse_jobs_in_queue(root: Path) -> None:
    """Refuse to start while Slurm holds jobs of this folder.

    Snakemake knows only the jobs that it has submitted itself. One that was killed (not one that was
    stopped with Ctrl-C) leaves its jobs waiting and running, and the next would submit them again.

    Raises:
        InputError: there are such jobs.
    """
    left = jobs_in_queue(root)
    if left:
        raise InputError(
            f"Slurm still has {len(left)} jobs of this folder, which a run that was killed, or one "
            f"at work elsewhere, has submitted: {', '.join(left)}; they would run twice",
            f"cancel them, then start the same command again: scancel {' '.join(left)} "
            "(trainings go on from their checkpoints; what such jobs finish would be made again)",
        )


def jobs_in_queue(root: Path) -> list[str]:
    """Numbers of one's own waiting and running jobs whose working directory is `root`.

    None where there is no Slurm, or none that answers; nor the job that this process runs in.
    """
    squeue = shutil.which("squeue")
    if squeue is None:
        return []
    try:
        asked = subprocess.run(
            [squeue, "--me", "--noheader", "--format=%i|%Z"],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError):  # installed, but part of no cluster
        return []
    rows = (line.partition("|") for line in asked.stdout.splitlines())
    own = os.environ.get("SLURM_JOB_ID")
    return [
        number for number, _, folder in rows if folder == str(root.resolve()) and number != own
    ]

"""Jobs that a killed run left in Slurm's queue are not submitted again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.provenance.queued import jobs_in_queue, refuse_jobs_in_queue


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """A stand-in for Slurm's command that prints what it is given; `%Z` must be asked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)

    def prints(text: str, status: int = 0) -> None:
        command = folder / "squeue"
        answer = tmp_path / "answer"
        answer.write_text(text, encoding="utf-8")
        script = f'#!/bin/sh\necho "$@" | grep -q "%i|%Z" || exit 9\ncat {answer}\nexit {status}\n'
        command.write_text(script, encoding="utf-8")
        command.chmod(0o755)

    return prints


def test_jobs_of_this_folder_are_refused_with_the_way_out(squeue):
    root = Path("/home/me/a study")
    squeue("7|/home/me/a study\n8|/home/me/another\n9|/home/me/a study\n")
    with pytest.raises(InputError) as refused:
        refuse_jobs_in_queue(root)
    assert "2 jobs of this folder" in refused.value.what
    assert "scancel 7 9" in refused.value.remedy


def test_the_job_that_we_run_in_is_not_one_of_them(squeue, monkeypatch):
    squeue("7|/home/me\n")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    refuse_jobs_in_queue(Path("/home/me"))


def test_an_empty_queue_is_none(squeue):
    squeue("")
    assert jobs_in_queue(Path("/home/me")) == []


def test_a_slurm_that_does_not_answer_is_none(squeue):
    squeue("7|/home/me\n", status=1)
    assert jobs_in_queue(Path("/home/me")) == []


def test_without_slurm_there_are_no_jobs(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert jobs_in_queue(tmp_path) == []

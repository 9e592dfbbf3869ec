"""A study goes through a real Slurm of one node; trainings that are killed there go on.

The study is `smoke`, to its teacher and a base student. Amid its training the teacher is sent back
into the queue, as Slurm does with preempted jobs; the student, on what stands in for a graphics
card, is cancelled, as Slurm does with jobs that use too much.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import one_node_slurm as slurm
from .conftest import Checkout, clone

pytestmark = [pytest.mark.workflow, pytest.mark.long]

STUDY = "smoke-slurm"
OVERLAY = f"""
extends: [smoke]
study: {STUDY}
teacher: {{training: {{steps: 80, validate_every: 80, checkpoint_every: 5, target_micro_f1: 0}}}}
distil: {{base: {{steps: 200, checkpoint_every: 10}}}}
"""
TEACHER, STUDENT = "train_teacher", "train_base_student"
MADE = {
    TEACHER: f"results/{STUDY}/teacher/model.safetensors",
    STUDENT: f"results/{STUDY}/distil/base/seed0/model.safetensors",
}
QUICK = (
    "--slurm-init-seconds-before-status-checks=4",
    "--latency-wait=5",
)


@dataclass(frozen=True)
class Job:
    """One job of Slurm."""

    number: str
    state: str
    rule: str
    memory: str
    minutes: str
    partition: str


@dataclass(frozen=True)
class Run:
    """The study after its run."""

    checkout: Checkout
    completed: str
    """Slurm's own log of jobs that ended."""
    jobs: list[Job]

    def of(self, rule: str) -> list[Job]:
        """The jobs that Slurm had of a rule, in order."""
        return [job for job in self.jobs if job.rule == rule]

    def log(self, name: str) -> str:
        """The log of a job, as the run wrapper keeps it."""
        return (self.checkout.root / "logs" / STUDY / f"{name}.log").read_text(encoding="utf-8")


def jobs_of_slurm() -> list[Job]:
    """All jobs, ended ones too; the comment that Snakemake leaves names the rule."""
    lines = slurm.told("squeue", "--states=all", "--noheader", "--format=%i|%T|%k|%m|%l|%P")
    rows = [line.split("|") for line in lines.splitlines()]
    jobs = [
        Job(number, state, re.sub(r"^rule_|_wildcards_.*$", "", comment), *rest)
        for number, state, comment, *rest in rows
    ]
    return sorted(jobs, key=lambda job: int(job.number))


def trained_so_far(process: subprocess.Popen[str], root: Path, rule: str, checkpoint: str) -> str:
    """The number of the rule's job, once it runs and has left a checkpoint."""
    found: list[str] = []

    def there() -> bool:
        assert process.poll() is None, process.communicate()[0]
        at_work = [job for job in jobs_of_slurm() if (job.rule, job.state) == (rule, "RUNNING")]
        found[:] = [job.number for job in at_work]
        return bool(found) and any((root / "checkpoints" / STUDY).glob(f"*/{checkpoint}"))

    slurm.wait(600, there, f"a checkpoint of {rule}")
    return found[0]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    try:
        slurm.install()
    except slurm.Unavailable as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp(slurm.FOLDER)
    with slurm.running(folder):
        yield folder


@pytest.fixture(scope="module")
def finished(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    checkout = clone(tmp_path_factory.mktemp("cluster") / "mechdistill")
    (checkout.root / "studies" / f"{STUDY}.yaml").write_text(OVERLAY, encoding="utf-8")
    command = ("snakemake", "--profile", "slurm", "--config", f"study={STUDY}", *QUICK)
    cards = ("--set-resources", f"{STUDENT}:gpu=1")
    process = checkout.start(*command, *cards, "--", *MADE.values())
    try:
        student = trained_so_far(process, checkout.root, STUDENT, "base-seed0")
        slurm.told("scancel", student)
        teacher = trained_so_far(process, checkout.root, TEACHER, "teacher")
        slurm.told("scontrol", "requeue", teacher)
        output, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, output
    completed = (cluster / "completed.txt").read_text(encoding="utf-8")
    return Run(checkout, completed, jobs_of_slurm())


def test_every_job_was_one_of_slurm_and_has_a_log(finished: Run) -> None:
    records = sorted((finished.checkout.root / "provenance" / "runs" / STUDY).glob("*.json"))
    assert len(records) == 4  # with those of the data
    ended = {job.number for job in finished.jobs if job.state == "COMPLETED"}
    for path in records:
        record = json.loads(path.read_text(encoding="utf-8"))
        number = record["slurm_job_id"]
        assert number in ended, record["job"]
        (log,) = (finished.checkout.root / ".snakemake" / "slurm_logs").rglob(f"{number}.log")
        assert f"{record['job']} | done in" in log.read_text(encoding="utf-8")


def test_a_requeued_training_goes_on_under_its_own_number(finished: Run) -> None:
    (job,) = finished.of(TEACHER)
    assert job.state == "COMPLETED"
    assert re.search(r"goes on from step \d*[05]\n", finished.log(TEACHER))
    (log,) = (finished.checkout.root / ".snakemake" / "slurm_logs").rglob(f"{job.number}.log")
    assert log.read_text(encoding="utf-8").count("train_teacher | started") == 2
    ends = re.findall(rf"^JobId={job.number} .*$", finished.completed, re.MULTILINE)
    assert len(ends) == 2  # sent back, then completed


def test_a_cancelled_training_comes_back_with_more_and_goes_on(finished: Run) -> None:
    first, second = finished.of(STUDENT)
    assert (first.state, second.state) == ("CANCELLED", "COMPLETED")
    assert (first.memory, second.memory) == ("4000M", "8000M")
    assert (first.minutes, second.minutes) == ("30:00", "1:00:00")
    assert re.search(r"goes on from step \d+0\n", finished.log(f"{STUDENT}-0"))


def test_other_jobs_ran_once(finished: Run) -> None:
    rules = [job.rule for job in finished.jobs if job.rule != STUDENT]
    assert len(rules) == len(set(rules)) == 3


def test_jobs_that_ask_for_a_card_get_it_in_its_partition(finished: Run) -> None:
    for job in finished.jobs:
        asks = "TresPerJob=gres:gpu:1" in slurm.told("scontrol", "show", "job", job.number)
        assert asks == (job.rule == STUDENT)
        assert job.partition == ("gpu" if asks else "cpu")


def test_jobs_that_a_killed_run_left_are_not_submitted_again(finished: Run) -> None:
    root = finished.checkout.root
    left = slurm.told("sbatch", "--parsable", "-D", str(root), "-o", "/dev/null", "--wrap=sleep 99")
    again = ("--cores=1", "--forcerun", TEACHER, "--", MADE[TEACHER])
    try:
        done = finished.checkout.snakemake(*again, study=STUDY)
    finally:
        slurm.told("scancel", left)
    assert done.returncode == 1
    assert f"scancel {left}" in done.stdout
    assert "Traceback" not in done.stdout

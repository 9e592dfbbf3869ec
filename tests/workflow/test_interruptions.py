"""Whatever stops a run, what was finished is kept and the same command goes on from there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from .conftest import STUDY, Checkout
from .faults import at_work, digests, killed

pytestmark = pytest.mark.workflow

RESULTS = f"results/{STUDY}"
TEACHER = f"{RESULTS}/teacher/model.safetensors"
STUDENT = f"{RESULTS}/distil/mech/seed0/model.safetensors"
TRACES = f"{RESULTS}/teacher/traces.parquet"


def driver(*targets: str) -> tuple[str, ...]:
    return ("mechdistill.reproduce", "--study", STUDY, "--cores", "1", *targets)


def started(checkout: Checkout, target: str, rule: str) -> subprocess.Popen[str]:
    """The driver, a second after the job of `rule` that makes `target` has begun."""
    (checkout.root / target).unlink(missing_ok=True)
    process = checkout.start(*driver(target))
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if f"] {rule}" in line and "| started" in line:
            time.sleep(1)
            return process
    raise AssertionError("".join(lines))


def script_of(process: subprocess.Popen[str]) -> psutil.Process:
    """The process of the one script at work: one of its own, or forked from the warm one."""
    deadline = time.monotonic() + 120
    while True:
        children = psutil.Process(process.pid).children(recursive=True)
        warm = {child.pid for child in children if "mechdistill.provenance.warm" in command(child)}
        at_work = [
            child
            for child in children
            if "mechdistill.provenance.script" in command(child) or child.ppid() in warm
        ]
        if len(at_work) == 1:
            return at_work[0]
        assert time.monotonic() < deadline, f"scripts at work: {at_work}"
        time.sleep(0.05)


def command(process: psutil.Process) -> list[str]:
    """The words of the command line; none where the process has just ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def wait_until_idle(checkout: Checkout) -> None:
    deadline = time.monotonic() + 120
    while at_work(checkout):
        assert time.monotonic() < deadline, f"still at work: {at_work(checkout)}"
        time.sleep(0.2)


def goes_on(checkout: Checkout, target: str, before: dict[str, str]) -> None:
    """The same command finishes with the same bytes, and all that uses them is up to date."""
    done = checkout.run(*driver(target))
    assert done.returncode == 0, done.stdout
    assert digests(checkout) == before
    tell_the_budgets = {"make_budget", "judge_claims", "write_report", "audit_results"}
    assert checkout.planned() <= tell_the_budgets


def stopped_by(number: signal.Signals, process: subprocess.Popen[str]) -> None:
    process.send_signal(number)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "Stopped. What was finished is kept" in output
    assert "Traceback" not in output


def killed_9(victim: psutil.Process, process: subprocess.Popen[str]) -> str:
    victim.kill()
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    return output


def snakemake_of(process: subprocess.Popen[str]) -> psutil.Process:
    children = psutil.Process(process.pid).children()
    (snakemake,) = (child for child in children if "snakemake" in child.cmdline())
    return snakemake


def test_one_training_stopped_and_killed_in_every_way(copy_of_smoke: Checkout) -> None:
    """In turn, since the teacher's training is the dear part; each start goes on from the last."""
    before = digests(copy_of_smoke)

    process = started(copy_of_smoke, TEACHER, "train_teacher")
    second = copy_of_smoke.run(*driver(TEACHER))
    assert second.returncode == 1
    assert "a run is already at work" in second.stdout
    stopped_by(signal.SIGINT, process)  # Ctrl-C
    wait_until_idle(copy_of_smoke)

    process = started(copy_of_smoke, TEACHER, "train_teacher")
    stopped_by(signal.SIGTERM, process)  # a machine that is shut down
    wait_until_idle(copy_of_smoke)

    process = started(copy_of_smoke, TEACHER, "train_teacher")
    killed_9(psutil.Process(process.pid), process)
    wait_until_idle(copy_of_smoke)

    process = started(copy_of_smoke, TEACHER, "train_teacher")
    killed_9(snakemake_of(process), process)
    wait_until_idle(copy_of_smoke)

    process = started(copy_of_smoke, TEACHER, "train_teacher")
    output = killed_9(script_of(process), process)
    assert process.returncode == 1
    assert "FAILED: the script was ended by SIGKILL" in output
    assert "What to do: if the memory was full" in output

    goes_on(copy_of_smoke, TEACHER, before)


def test_truncated_artifact_is_named_and_the_remedy_works(copy_of_smoke: Checkout) -> None:
    before = digests(copy_of_smoke)
    traces = copy_of_smoke.root / TRACES
    traces.write_bytes(traces.read_bytes()[:-100])
    scores = f"{RESULTS}/heads/head_scores.parquet"
    failed = copy_of_smoke.run(*driver(scores))
    assert failed.returncode == 1
    assert f"FAILED: {TRACES} is truncated or damaged" in failed.stdout
    assert f"What to do: delete it and make it again: rm {TRACES}" in failed.stdout
    assert "Traceback" not in failed.stdout
    traces.unlink()
    done = copy_of_smoke.run(*driver(TRACES, scores))
    assert done.returncode == 0, done.stdout
    assert digests(copy_of_smoke) == before


def test_artifact_of_another_version_is_refused(copy_of_smoke: Checkout) -> None:
    pools = copy_of_smoke.root / RESULTS / "heads" / "pools.json"
    text = pools.read_text(encoding="utf-8")
    assert text.count('"mechdistill_format": 1') == 1
    pools.write_text(text.replace('"mechdistill_format": 1', '"mechdistill_format": 99'))
    failed = copy_of_smoke.run(*driver(f"{RESULTS}/distil/targets.safetensors"))
    assert failed.returncode == 1
    assert "heads/pools.json has format 99, this version of mechdistill reads" in failed.stdout
    assert "What to do: check out the version that wrote it, or delete it" in failed.stdout


@contextmanager
def full_disk_of_student(checkout: Checkout) -> Iterator[None]:
    """Within the block the folder of the student's weights is empty and on a disk of 16 KiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = checkout.root / Path(STUDENT).parent
    for path in folder.iterdir():
        path.unlink()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_is_one_message_and_then_it_goes_on(copy_of_smoke: Checkout) -> None:
    before = digests(copy_of_smoke)
    with full_disk_of_student(copy_of_smoke):
        failed = copy_of_smoke.run(*driver(STUDENT))
    assert failed.returncode == 1
    assert "FAILED: the disk is full" in failed.stdout
    assert "free some space" in failed.stdout
    assert "Traceback" not in failed.stdout
    goes_on(copy_of_smoke, STUDENT, before)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Within the block nobody can write to the folder; chmod would not stop root."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(0o755)
        return
    for command in (["--bind", str(folder), str(folder)], ["-o", "remount,bind,ro", str(folder)]):
        mounted = subprocess.run(["mount", *command], capture_output=True, text=True)
        if mounted.returncode != 0:
            subprocess.run(["umount", str(folder)], capture_output=True)
            pytest.skip(f"no folder can be made read-only here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_read_only_results_are_named_before_any_work(shared_copy: Checkout) -> None:
    before = digests(shared_copy)
    folder = (shared_copy.root / STUDENT).parent
    cut = shared_copy.root / RESULTS / "report" / "report.html"  # a job that could run
    page = cut.read_bytes()
    cut.unlink()
    with read_only(folder):
        said = [shared_copy.run(*driver()), shared_copy.snakemake("--cores", "1")]
        planned = shared_copy.snakemake("-n")
    for done in said:
        assert done.returncode == 1, done.stdout
        assert f"{folder} cannot be written: " in done.stdout
        assert "What to do: " in done.stdout
        assert "it belongs to " in done.stdout and ", mode d" in done.stdout
        assert "Traceback" not in done.stdout
        assert "| started" not in done.stdout
    assert planned.returncode == 0, planned.stdout
    assert not cut.exists()
    cut.write_bytes(page)
    assert digests(shared_copy) == before


@pytest.mark.long
def test_kill_9_of_all_processes_at_random_moments(copy_of_smoke: Checkout) -> None:
    """Two kills; `make faults` counts thirty."""
    before = digests(copy_of_smoke)
    for folder in ("significance", "report", "audit"):  # what follows from the first is redone
        shutil.rmtree(copy_of_smoke.root / RESULTS / folder)
    kills = []
    for round_, as_undisturbed in killed(copy_of_smoke, before, times=2, most_starts=2, seed=0):
        assert as_undisturbed
        kills += round_
    assert [(kill.redone, kill.other_bytes) for kill in kills] == [([], [])] * 2


def test_two_drivers_that_start_together_do_not_disturb_each_other(
    copy_of_smoke: Checkout,
) -> None:
    before = digests(copy_of_smoke)
    card = f"{RESULTS}/data/data_card.md"
    (copy_of_smoke.root / card).unlink()
    both = [copy_of_smoke.start(*driver(card)) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1], said
    assert sum("a run is already at work" in text for text in said) == 1, said
    assert digests(copy_of_smoke) == before

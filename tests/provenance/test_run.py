"""The run wrapper: a true record after success, one clear message after failure."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mechdistill import artifacts
from mechdistill.provenance import record
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.warm import ADDRESS

REPOSITORY = Path(__file__).parents[2]
LOG = "logs/tiny/make_thing-mech-0.log"
RECORD = "provenance/runs/tiny/make_thing-mech-0.json"
PARAMS = '{"heads.seed":3,"distil.training":{"steps":4,"order_seed":9},"never.read":1}'

GOOD = """
import argparse
from mechdistill.parameters import Parameters
from pack.plugged import value
parser = argparse.ArgumentParser()
for name in ("--params", "--source", "--out", "--seed"):
    parser.add_argument(name)
args = parser.parse_args()
p = Parameters.from_json(args.params)
print("seed", p["heads.seed"], "steps", p["distil.training"]["steps"], value)
open(args.out, "w").write(open(args.source).read() * 2)
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of one script; modules of mechdistill come from the real one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "mechdistill").symlink_to(REPOSITORY / "src" / "mechdistill")
    (tmp_path / "in.txt").write_text("abc")
    return tmp_path


def command(root: Path, script: str, *, code: str | None = None, out: str = "out.txt") -> list[str]:
    (root / "make_thing.py").write_text(script)
    return [
        *(sys.executable, "-m", "mechdistill.provenance.run"),
        *("--params", PARAMS, "--log", LOG, "--threads", "1"),
        *("--code", code or SourceTree(root).fingerprint("make_thing.py").digest),
        *("--inputs", "in.txt", "--outputs", out, "--"),
        *("make_thing.py", "--source", "in.txt", "--out", out, "--seed", "0"),
    ]


def environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root / 'plugins'}"} | warm_address(root)


def warm_address(root: Path) -> dict[str, str]:
    address = root / "warm"
    return {ADDRESS: str(address)} if address.exists() else {}


@pytest.fixture(params=["new process", "warm process"], autouse=True)
def server(request: pytest.FixtureRequest, root: Path) -> Iterator[None]:
    """Every test holds for scripts in a process of their own and for forked ones."""
    if request.param == "new process":
        yield
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "mechdistill.provenance.warm", str(root / "warm"), "decimal"],
        env=environment(root),
    )
    while not (root / "warm").exists():
        time.sleep(0.05)
    yield
    process.kill()
    process.wait()


def run(root: Path, script: str, **options: str) -> subprocess.CompletedProcess[str]:
    (root / "plugins" / "pack").mkdir(parents=True, exist_ok=True)
    (root / "plugins" / "pack" / "plugged.py").write_text("value = 'plugged'\n")
    return subprocess.run(
        command(root, script, **options), capture_output=True, text=True, env=environment(root)
    )


def test_record_says_what_went_in_ran_and_came_out(root: Path) -> None:
    done = run(root, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    content = artifacts.read_json(root / RECORD)
    assert content["inputs"] == [
        {"path": "in.txt", "sha256": hashlib.sha256(b"abc").hexdigest(), "bytes": 3}
    ]
    assert content["outputs"] == [
        {"path": "out.txt", "sha256": hashlib.sha256(b"abcabc").hexdigest(), "bytes": 6}
    ]
    assert content["parameters"] == json.loads(PARAMS)
    assert content["unread_parameters"] == ["never.read"]
    assert content["seeds"] == {"heads.seed": 3, "distil.training.order_seed": 9, "--seed": "0"}
    assert content["code"]["fingerprint"] == SourceTree(root).fingerprint("make_thing.py").digest
    assert "make_thing.py" in content["code"]["files"]
    assert content["code"]["not_in_fingerprint"] == []
    assert content["peak_memory_bytes"] > 2**20
    assert content["started"] <= content["ended"]
    assert {"commit", "dirty"} == set(content["git"])


def test_output_goes_to_the_terminal_under_the_jobs_name_and_to_the_log(root: Path) -> None:
    done = run(root, GOOD)
    assert "make_thing mech-0 | seed 3 steps 4 plugged\n" in done.stdout
    assert "seed 3 steps 4 plugged\n" in (root / LOG).read_text()
    assert done.stdout.splitlines()[0] == "make_thing mech-0 | started"
    assert done.stdout.splitlines()[-1].startswith("make_thing mech-0 | done in ")


def test_warm_process_has_its_libraries_and_nothing_of_a_script_before(root: Path) -> None:
    tell = "import sys\nprint('decimal', 'decimal' in sys.modules, 'left', hasattr(sys, 'left'))\n"
    for _ in range(2):
        done = run(root, tell + "sys.left = 1\n" + GOOD)
        assert f"decimal {bool(warm_address(root))} left False" in done.stdout


def test_missing_warm_process_does_not_matter(root: Path) -> None:
    (root / "warm").unlink(missing_ok=True)
    (root / "warm").write_text("no socket")
    assert run(root, GOOD).returncode == 0


def test_module_outside_the_fingerprint_is_named(root: Path) -> None:
    done = run(root, GOOD + "__import__('mechdistill.' + 'progress')\n")
    assert done.returncode == 0, done.stdout
    code = artifacts.read_json(root / RECORD)["code"]
    assert code["not_in_fingerprint"] == ["src/mechdistill/progress.py"]


FAILURES = {
    "input": (
        "from mechdistill.errors import InputError\n"
        "raise InputError('a.csv, row 3: no code', 'add it')",
        ["FAILED: a.csv, row 3: no code", "What to do: add it"],
    ),
    "fault": (
        "def f():\n    return {}['x']\nf()",
        ["FAILED: KeyError: 'x' (", "make_thing.py, line 2)", "fault of the program"],
    ),
    "no output": ("print('hm')", ["FAILED: make_thing.py ended without writing out.txt"]),
    "killed": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        ["FAILED: the script was ended by SIGKILL", "--cores 1"],
    ),
    "full disk": (
        "import errno\nraise OSError(errno.ENOSPC, 'No space left on device', 'big.bin')",
        ["FAILED: the disk is full (big.bin)", "free some space"],
    ),
    "memory": ("raise MemoryError", ["FAILED: the memory is full"]),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failure_is_one_message_with_a_remedy(root: Path, name: str) -> None:
    script, expected = FAILURES[name]
    (root / RECORD).parent.mkdir(parents=True)
    (root / RECORD).write_text("{}")
    done = run(root, script)
    assert done.returncode == 1
    for text in expected:
        assert text in done.stdout, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "Log: logs/tiny/make_thing-mech-0.log" in done.stdout
    assert not (root / RECORD).exists(), "the record of replaced outputs stayed"


def test_traceback_of_a_fault_is_in_the_log(root: Path) -> None:
    run(root, FAILURES["fault"][0])
    assert "Traceback (most recent call last)" in (root / LOG).read_text()


PLANTED = "Xanthippe Quillfeather"
TELLING = """
import sys
planted = open("in.txt").read()
print("training step 3/4 (75%), 2.0/s, 1 s left")
print("documents: 12 (published: 13)")
print("note: columns ward are ignored")
print(f"Token indices of '{planted}' are too long", flush=True)
print(f"{planted} was seen", file=sys.stderr, flush=True)
raise KeyError(planted)
"""


def test_restricted_jobs_show_progress_counts_and_places_of_faults_alone(root: Path) -> None:
    (root / "in.txt").write_text(PLANTED)
    words = command(root, TELLING)
    done = subprocess.run(
        [*words[: words.index("--")], "--restricted", *words[words.index("--") :]],
        **{"env": environment(root), "capture_output": True, "text": True, "check": False},
    )
    said = done.stdout + done.stderr + (root / LOG).read_text()
    assert done.returncode == 1
    assert not any(word in said for word in PLANTED.split())
    for line in ("training step 3/4", "documents: 12 (published: 13)", "columns ward are ignored"):
        assert line in said
    assert "KeyError (" in said and "make_thing.py, line 9)" in said
    assert "is not shown, data are restricted" in said


def test_missing_input_is_named(root: Path) -> None:
    (root / "in.txt").unlink()
    done = run(root, GOOD)
    assert done.returncode == 1
    assert "FAILED: in.txt is missing" in done.stdout


def test_code_changed_since_the_workflow_started_is_refused(root: Path) -> None:
    done = run(root, GOOD, code="0" * 64)
    assert done.returncode == 1
    assert "code of make_thing.py changed" in done.stdout
    assert not (root / "out.txt").exists()


def test_half_written_files_of_a_killed_run_are_cleared(root: Path) -> None:
    (root / ".out.123.partial.txt").write_text("half")
    (root / ".other.123.partial.txt").write_text("half")
    assert run(root, GOOD).returncode == 0
    assert not (root / ".out.123.partial.txt").exists()
    assert (root / ".other.123.partial.txt").exists()


WAITING = """
import subprocess, sys
subprocess.run(["sh", "-c", '"$@"; true', "sh", *sys.argv[1:]])
"""
SLOW = "import os, time\nprint('pid', os.getpid())\ntime.sleep(60)"


def started(root: Path, prefix: list[str] | None = None) -> tuple[subprocess.Popen[str], int]:
    """The wrapper on a slow script, and the script's process id."""
    process = subprocess.Popen(
        [*(prefix or []), *command(root, SLOW)],
        stdout=subprocess.PIPE, text=True, env=environment(root),
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if "| pid" in line:
            return process, int(line.split()[-1])
    raise AssertionError("the script did not start")


def ends(pid: int, within: float = 5.0) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_stops_the_script_with_one_message(root: Path, number: signal.Signals) -> None:
    process, script = started(root)
    process.send_signal(number)
    output, _ = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "stopped" in output
    assert "Traceback" not in output
    assert ends(script)


SIGNALLED_AGAIN = """
import os, signal, sys, types
class Late(types.ModuleType):
    @property
    def __file__(self):
        os.kill(os.getpid(), signal.SIGINT)
sys.modules["late"] = Late("late")
try:
    os.kill(os.getpid(), signal.SIGINT)
finally:
    os.kill(os.getpid(), signal.SIGINT)
    print("put away")
"""


def test_second_interrupt_disturbs_no_clearing_away(root: Path) -> None:
    # the process group's signal and the wrapper's: the later one amid `finally`, or even later
    done = run(root, SIGNALLED_AGAIN)
    assert done.returncode == 130, done.stdout
    assert "put away" in done.stdout
    assert "stopped" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_script_ends_when_the_wrapper_is_killed(root: Path) -> None:
    process, script = started(root)
    process.kill()
    process.wait()
    assert ends(script)


def test_script_ends_when_snakemake_is_killed(root: Path) -> None:
    # a process called snakemake that waits, as Snakemake does, for a shell that waits for the job
    waiting = root / "snakemake"
    waiting.write_text(WAITING)
    process, script = started(root, [sys.executable, str(waiting)])
    process.kill()
    process.wait()
    assert ends(script)


def test_git_state_tells_a_changed_checkout(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    assert record.git_state(tmp_path) == {"commit": None, "dirty": None}
    git("init")
    (tmp_path / "params.yaml").write_text("a: 1")
    git("add", ".")
    git("commit", "-m", "x")
    assert record.git_state(tmp_path)["dirty"] is False
    (tmp_path / "results.txt").write_text("not code")
    assert record.git_state(tmp_path)["dirty"] is False
    (tmp_path / "params.yaml").write_text("a: 2")
    assert record.git_state(tmp_path)["dirty"] is True

"""The smoke study, run once for all workflow tests, and copies of it to change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
STUDY = "smoke"


def environment() -> dict[str, str]:
    """The tests' own environment without what would lead a job to another checkout."""
    dropped = ("PYTHONPATH", "SNAKEMAKE_PROFILE", "COVERAGE_PROCESS_START")
    return {name: value for name, value in os.environ.items() if name not in dropped}


@dataclass(frozen=True)
class Checkout:
    """A working copy of the repository in which the workflow can be run."""

    root: Path
    output: str = ""
    """What the run that filled it said."""
    seconds: float = 0.0

    def start(
        self, *command: str, variables: Mapping[str, str] | None = None, **options: object
    ) -> subprocess.Popen[str]:
        """Start `python -m COMMAND` here, its output and errors in one pipe."""
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=self.root,
            env=environment() | {"PYTHONPATH": str(self.root / "src")} | dict(variables or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # a signal sent to it does not reach the tests
            **options,  # type: ignore[call-overload]
        )

    def run(
        self, *command: str, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `python -m COMMAND` here to its end, with further environment variables."""
        process = self.start(*command, variables=variables)
        output, _ = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, output)

    def snakemake(self, *arguments: str, study: str = STUDY) -> subprocess.CompletedProcess[str]:
        """Run Snakemake on the study to its end."""
        return self.run("snakemake", "--config", f"study={study}", *arguments)

    def planned(self) -> set[str]:
        """Jobs that `snakemake -n` wants to run: `make_pools`, `train_student mech 0`."""
        done = self.snakemake("-n")
        assert done.returncode == 0, done.stdout
        jobs = set()
        for block in re.split(r"\n(?=\[|Job stats)", done.stdout):
            rule = re.search(r"^(?:local)?rule (\w+):$", block, re.MULTILINE)
            if rule:
                wildcards = re.search(r"^ +wildcards: (.*)$", block, re.MULTILINE)
                values = re.findall(r"=([^,]+)", wildcards[1]) if wildcards else []
                jobs.add(" ".join([rule[1], *values]))
        return jobs - {"all", "report", "audit"}

    @contextmanager
    def edited(self, path: str, old: str, new: str) -> Iterator[None]:
        """Within the block, `path` says `new` where it says `old` (once)."""
        file = self.root / path
        before = file.read_text(encoding="utf-8")
        assert before.count(old) == 1, f"{path} says {old!r} {before.count(old)} times"
        file.write_text(before.replace(old, new), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(before, encoding="utf-8")


def clone(target: Path) -> Checkout:
    """A clone of the repository with the changes of its working tree, and no results."""
    git = ["git", "-C", str(REPOSITORY)]
    subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(target)], check=True)
    listed = ["ls-files", "-z", "--modified", "--others", "--deleted", "--exclude-standard"]
    names = subprocess.run([*git, *listed], check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        source, copy = REPOSITORY / name, target / name
        copy.unlink(missing_ok=True)
        if source.is_symlink() or source.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    return Checkout(target)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The smoke study, run from nothing by the driver. Not to be changed: see `copy_of_smoke`."""
    checkout = clone(tmp_path_factory.mktemp("smoke") / "mechdistill")
    begin = time.monotonic()
    done = checkout.run("mechdistill.reproduce", "--study", STUDY, "--cores", "2")
    assert done.returncode == 0, done.stdout
    return Checkout(checkout.root, done.stdout, time.monotonic() - begin)


def copied(checkout: Checkout, target: Path) -> Checkout:
    """A copy with times and links kept."""
    shutil.copytree(checkout.root, target, symlinks=True)
    return Checkout(target)


@pytest.fixture
def copy_of_smoke(smoke: Checkout, tmp_path: Path) -> Checkout:
    """The finished smoke study, for one test to change."""
    return copied(smoke, tmp_path / "mechdistill")


@pytest.fixture(scope="module")
def shared_copy(smoke: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The finished smoke study for tests that put back what they change (`Checkout.edited`)."""
    return copied(smoke, tmp_path_factory.mktemp("shared") / "mechdistill")


@pytest.fixture
def fresh_clone(tmp_path: Path) -> Checkout:
    """A clone without results."""
    return clone(tmp_path / "mechdistill")

"""The environment is locked whole, and says why each direct dependency is there."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ENVS = ROOT / "envs"
FILES = {
    "run": ("requirements.in", "torch.txt", "encoder.txt", "pretrained.txt", "deepspeed.txt"),
    "test": (
        "requirements.in",
        "torch.txt",
        "encoder.txt",
        "pretrained.txt",
        "deepspeed.txt",
        "requirements-dev.in",
    ),
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def direct(*files: str) -> set[str]:
    lines = "\n".join((ENVS / file).read_text(encoding="utf-8") for file in files)
    return {normal(name) for name in re.findall(r"^([A-Za-z][\w.-]*)", lines, re.MULTILINE)}


def locked(file: str = "requirements.txt") -> dict[str, str]:
    """Name -> all that a lock says about it."""
    text = (ENVS / file).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[A-Za-z])", text, flags=re.MULTILINE)[1:]
    return {normal(entry.partition("==")[0]): entry for entry in entries}


def imported(folder: Path) -> set[str]:
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"benchmarks", "mechdistill", "tests"}


def test_every_direct_requirement_is_locked() -> None:
    assert direct("requirements.in", "requirements-dev.in") <= set(locked())
    assert direct("validator.in") <= set(locked("validator.txt"))


@pytest.mark.parametrize("file", ["requirements.txt", "validator.txt"])
def test_every_locked_requirement_has_a_version_and_a_hash(file: str) -> None:
    for name, entry in locked(file).items():
        assert re.match(r"[\w.-]+==[\w.+!]+ \\\n    --hash=sha256:[0-9a-f]{64}", entry), name


@pytest.mark.parametrize("name", sorted(direct(*FILES["test"], "validator.in")))
def test_every_direct_requirement_is_justified(name: str) -> None:
    rows = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8").splitlines()
    named = {normal(word) for row in rows for word in re.findall(r"[\w-]+", row.split(" | ")[0])}
    assert name in named


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [("src", "run"), ("workflow/scripts", "run"), ("workflow/tools", "run"), ("tests", "test")],
)
def test_only_direct_requirements_are_imported(folder: str, allowed: str) -> None:
    owners = packages_distributions()
    names = imported(ROOT / folder)
    strange = {
        name
        for name in names
        if not {normal(owner) for owner in owners.get(name, [name])} & direct(*FILES[allowed])
    }
    assert strange == set()


def test_lock_names_no_path_of_the_machine_that_made_it() -> None:
    text = (ENVS / "requirements.txt").read_text(encoding="utf-8")
    comments = "\n".join(re.findall(r"#.*", text))
    assert set(re.findall(r"-r (\S+)", comments)) == {"requirements.in", "requirements-dev.in"}
    assert "/" not in comments

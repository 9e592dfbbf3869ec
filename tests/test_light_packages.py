"""What is for notebooks alone is no part of any rule's code."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from mechdistill.provenance.fingerprint import SourceTree

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("mechdistill.heads", "mechdistill.patching")
SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))
NOTEBOOK = {
    "src/mechdistill/data/places_in_text.py",
    "src/mechdistill/heads/annotated_trace.py",
    "src/mechdistill/heads/prompt_scores.py",
    "src/mechdistill/heads/score_map.py",
    "src/mechdistill/models/lending.py",
    "src/mechdistill/patching/prompt_pairs.py",
    "src/mechdistill/patching/prompt_sweep.py",
    "src/mechdistill/patching/sweep_figures.py",
}


@pytest.fixture(scope="module")
def tree():
    return SourceTree(ROOT)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_no_rule_runs_code_for_notebooks(tree, script):
    files = {path.relative_to(tree._root).as_posix() for path in tree.closure(script)}
    assert not files & NOTEBOOK


def test_notebooks_run_that_code(tree):
    """Else the names above would be of nothing."""
    entries = [path for path in NOTEBOOK if "/prompt_" in path]
    files = {path.relative_to(tree._root).as_posix() for path in tree.closure(*entries)}
    assert files > NOTEBOOK


@pytest.mark.parametrize("package", PACKAGES)
def test_package_reaches_nothing_when_it_is_imported(tree, package):
    path = Path("src", *package.split("."), "__init__.py")
    reached = {p.name for p in tree.closure(path)} | {p.parent.name for p in tree.closure(path)}
    assert reached == {"__init__.py", "on_demand.py", "mechdistill", package.rpartition(".")[2]}


def test_importing_the_packages_loads_no_library():
    code = f"import sys, {', '.join(PACKAGES)}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"torch", "transformers", "pandas", "numpy", "matplotlib"} & set(loaded)


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_what_the_type_checker_sees(package):
    module = importlib.import_module(package)
    assert module.__file__
    source = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    (typed,) = [node for node in source.body if isinstance(node, ast.If)]
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert sorted(seen) == module.__all__
    assert set(module.__all__) <= set(dir(module))
    for name, home in seen.items():
        assert getattr(module, name).__module__ == home
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = module.nothing_of_the_kind

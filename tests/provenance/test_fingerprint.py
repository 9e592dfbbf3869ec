"""The fingerprint sees every change of code that a script runs, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.provenance.fingerprint import SourceTree

FILES = {
    "script.py": "import os\nfrom pack.outer import work\nwork()\n",
    "src/pack/__init__.py": '"""A package."""\n__version__ = "1.0"\n',
    "src/pack/outer.py": "from .inner.deep import value\n\n\ndef work():\n    return value\n",
    "src/pack/inner/__init__.py": "",
    "src/pack/inner/deep.py": "import pack.late\nfrom pack.inner import sibling\nvalue = 1\n",
    "src/pack/inner/sibling.py": "def f():\n    from ..lazy import g\n    return g\n",
    "src/pack/inner/words.json": '["a"]',
    "src/pack/inner/templates/deeper/page.html": "<p>",
    "src/pack/late.py": "x = 1\n",
    "src/pack/lazy.py": "g = 1\n",
    "src/pack/typed.py": "t = 1\n",
    "src/pack/plugin.py": "from pack import plugged\n",
    "src/pack/plugged.py": "p = 1\n",
    "src/pack/unused.py": "u = 1\n",
}
REACHED = {
    "script.py",
    "src/pack/__init__.py",
    "src/pack/outer.py",
    "src/pack/inner/__init__.py",
    "src/pack/inner/deep.py",
    "src/pack/inner/sibling.py",
    "src/pack/inner/words.json",
    "src/pack/inner/templates/deeper/page.html",
    "src/pack/late.py",
    "src/pack/lazy.py",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def digest(root: Path, *extra: str) -> str:
    return SourceTree(root).fingerprint("script.py", *extra).digest


def test_closure_is_what_the_script_reaches(root: Path) -> None:
    assert set(SourceTree(root).fingerprint("script.py").files) == REACHED


def test_named_files_join_with_what_they_import(root: Path) -> None:
    files = SourceTree(root).fingerprint("script.py", "src/pack/plugin.py").files
    assert set(files) == REACHED | {"src/pack/plugin.py", "src/pack/plugged.py"}


@pytest.mark.parametrize("name", sorted(REACHED))
def test_a_change_of_any_reached_file_shows(root: Path, name: str) -> None:
    before = SourceTree(root).fingerprint("script.py")
    with (root / name).open("a") as file:
        file.write("\nchanged = 1\n")
    after = SourceTree(root).fingerprint("script.py")
    assert after.digest != before.digest
    assert {path for path in REACHED if after.files[path] != before.files[path]} == {name}


@pytest.mark.parametrize("name", sorted(set(FILES) - REACHED))
def test_a_change_elsewhere_does_not(root: Path, name: str) -> None:
    before = digest(root)
    (root / name).write_text("changed = 1\n")
    (root / "src/pack/new.py").write_text("n = 1\n")
    assert digest(root) == before


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\nfrom .inner.deep import value\ndef work(): return value\n",
        '"""Docs."""\nfrom .inner.deep import value\ndef work():\n    "More."\n    return value\n',
        "from .inner.deep import (\n    value,\n)\n\n\n\ndef work():\n    return (value)  # why\n",
    ],
)
def test_comments_layout_and_docstrings_do_not_count(root: Path, text: str) -> None:
    before = digest(root)
    (root / "src/pack/outer.py").write_text(text)
    assert digest(root) == before


def test_release_number_does_not_count(root: Path) -> None:
    before = digest(root)
    (root / "src/pack/__init__.py").write_text('__version__ = "2.0"\n')
    assert digest(root) == before


def test_a_string_that_is_no_docstring_counts(root: Path) -> None:
    (root / "src/pack/late.py").write_text('"""Docs."""\nx = "1"\n')
    before = digest(root)
    (root / "src/pack/late.py").write_text('"""Docs."""\nx = "2"\n')
    assert digest(root) != before


def test_imports_for_type_checking_alone_do_not_count(root: Path) -> None:
    (root / "src/pack/late.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.typed import t\n"
        "else:\n    from pack.unused import u\n"
    )
    files = SourceTree(root).fingerprint("script.py").files
    assert "src/pack/typed.py" not in files
    assert "src/pack/unused.py" in files


def test_asking_twice_gives_the_same(root: Path) -> None:
    (root / "src/pack/late.py").write_text('"one"\n"two"\nx = 1\n')
    tree = SourceTree(root)
    assert tree.fingerprint("script.py").digest == tree.fingerprint("script.py").digest


def test_import_cycles_end(root: Path) -> None:
    (root / "src/pack/late.py").write_text("import pack.outer\n")
    assert set(SourceTree(root).fingerprint("script.py").files) == REACHED


def test_broken_or_missing_source_is_named(root: Path) -> None:
    (root / "src/pack/late.py").write_text("def f(:\n")
    with pytest.raises(InputError, match=r"src/pack/late\.py is not valid Python"):
        digest(root)
    with pytest.raises(InputError, match=r"nowhere\.py is missing"):
        SourceTree(root).fingerprint("nowhere.py")

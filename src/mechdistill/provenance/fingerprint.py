"""Fingerprint of the code that a script runs.

Snakemake sees a change of a rule's command and of its parameters, not of the modules that a script
imports. A rule therefore carries the fingerprint of its script's import closure, found without
running anything: the script, every module of the package that it imports directly or
indirectly, and the data files that lie beside those modules. Comments, layout and docstrings do
not count. Files that are imported by a computed name must be named (`entries`).
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mechdistill.errors import InputError


@dataclass(frozen=True)
class Fingerprint:
    """Code of one job: path relative to the repository -> SHA-256 of what it says."""

    files: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 over all files and their names."""
        lines = (f"{path} {digest}\n" for path, digest in sorted(self.files.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()


class SourceTree:
    """The source files of one checkout; each is parsed once.

    Args:
        root: the repository.
        source: folder of the packages, relative to the root.
    """

    def __init__(self, root: Path, source: str = "src") -> None:
        self._root = root.resolve()
        self._source = self._root / source
        self._read = cache(self._read_module)
        self._digest = cache(self._compute_digest)
        self._imported = cache(self._find_imported)

    def fingerprint(self, *entries: str | Path) -> Fingerprint:
        """Fingerprint of everything that the files `entries` (relative to the root) import.

        Raises:
            InputError: a file is missing or is not Python.
        """
        files = {self._name(path): self._digest(path) for path in self.closure(*entries)}
        return Fingerprint(dict(sorted(files.items())))

    def closure(self, *entries: str | Path) -> frozenset[Path]:
        """The files that `entries` reach through imports, themselves and data files included."""
        reached: set[Path] = set()
        waiting = [(self._root / entry).resolve() for entry in entries]
        while waiting:
            path = waiting.pop()
            if path in reached:
                continue
            reached.add(path)
            waiting += self._imported(path)
        modules = {path for path in reached if path.is_relative_to(self._source)}
        return frozenset(reached).union(*map(_data_files, {path.parent for path in modules}))

    def module_name(self, path: Path) -> str:
        """Dotted name of a source file: `src/a/b/__init__.py` is `a.b`."""
        parts = path.relative_to(self._source).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _find_imported(self, path: Path) -> frozenset[Path]:
        return frozenset(self._imported_files(path))

    def _imported_files(self, path: Path) -> Iterator[Path]:
        if path.is_relative_to(self._source):
            yield from self._files_of(self.module_name(path))  # importing a.b runs a/__init__.py
        for name in self._read(path).imports:
            yield from self._files_of(name)

    def _files_of(self, name: str) -> Iterator[Path]:
        """Files that run when `name` is imported; a last part that is no module has none."""
        folder = self._source
        for part in name.split("."):
            module = folder / f"{part}.py"
            folder = folder / part
            if module.is_file():
                yield module
            if (folder / "__init__.py").is_file():
                yield folder / "__init__.py"

    def _read_module(self, path: Path) -> _Module:
        package = ""
        if path.is_relative_to(self._source):
            name = self.module_name(path)
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        try:
            return _read_module(path.read_text(encoding="utf-8"), package)
        except FileNotFoundError as error:
            raise InputError(f"{self._name(path)} is missing", "restore it from git") from error
        except (SyntaxError, ValueError) as error:
            raise InputError(
                f"{self._name(path)} is not valid Python: {error}", "mend it"
            ) from error

    def _compute_digest(self, path: Path) -> str:
        if path.suffix == ".py":
            return self._read(path).digest
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


class _Module(NamedTuple):
    """A source file: SHA-256 of what it says, and the dotted names that it imports."""

    digest: str
    imports: tuple[str, ...]


@cache  # by the text: several checkouts hold the same, and an edited file is read anew
def _read_module(text: str, package: str) -> _Module:
    tree = _without_idle_statements(ast.parse(text))
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return _Module(digest, tuple(_imported_names(tree, package)))


def _without_idle_statements(tree: ast.Module) -> ast.Module:
    """Drop what computes nothing: docstrings and the release number."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]
            node.body = [statement for statement in node.body if not _is_version(statement)]
    return tree


def _is_version(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and [
        getattr(target, "id", "") for target in statement.targets
    ] == ["__version__"]


def _imported_names(tree: ast.Module, package: str) -> Iterator[str]:
    """Dotted names that the module imports when it runs, also inside functions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parent = ".".join(parents[: len(parents) - node.level + 1])
                base = f"{parent}.{base}" if base else parent
            yield from (f"{base}.{alias.name}" for alias in node.names)
        waiting += ast.iter_child_nodes(node)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _data_files(folder: Path) -> Iterator[Path]:
    """Data that modules of this folder read: word lists, templates, folders of data alone."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != "__pycache__" and not any(path.glob("*.py")):
            yield from _data_files(path)
        elif path.is_file() and _is_data(path.name):
            yield path


def _is_data(name: str) -> bool:
    return (
        not name.endswith((".py", ".pyc", "~")) and not name.startswith(".") and name != "py.typed"
    )

"""Where a number comes from: the jobs and files behind it, back to data, code and packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rich.markup import escape
from rich.tree import Tree

from mechdistill.artifacts import BASE_STUDY, RESULTS, how_to_make
from mechdistill.audit.cells import cells_of
from mechdistill.audit.record import File, Record, machine, producers
from mechdistill.digests import sha256_of
from mechdistill.errors import InputError

CHOICES = 12
"""Cells that are named where a question fits several."""
DIGITS = 12
"""Of a hash that are printed; JSON has all."""
PICTURES = (".png", ".pdf")
"""Files of a figure."""
WIDTH = 88
"""Characters of a job's parameters that are printed; JSON has all."""


@dataclass(frozen=True)
class Origin:
    """A file and what it was made from.

    Attributes:
        path: relative to the checkout.
        sha256: of what was read or written when the job ran.
        now: what lies there today: "as recorded", "other bytes" or "missing".
        job: the record of the job that made it; None of a file from outside the workflow.
        inputs: what that job read; empty where the same job stands further up in full.
        again: whether it does.
    """

    path: str
    sha256: str
    now: str
    job: Record | None
    inputs: tuple[Origin, ...]
    again: bool

    def jobs(self) -> Iterator[Record]:
        """Every job behind the file once, the last first."""
        if self.job is not None and not self.again:
            yield self.job
        for origin in self.inputs:
            yield from origin.jobs()

    def files(self) -> Iterator[Origin]:
        """The file and every one behind it, as often as it is read."""
        yield self
        for origin in self.inputs:
            yield from origin.files()


def relative_path(root: Path, file: Path) -> str:
    """A file of some study's results, relative to the checkout.

    Raises:
        InputError: it is missing, or lies elsewhere.
    """
    path = (root / file).resolve()
    results = (root / RESULTS).resolve()
    if not path.is_file() or not path.is_relative_to(results) or path.parent == results:
        raise InputError(
            f"{file} is no file of a study's results",
            f"give one in {RESULTS}/STUDY, such as {RESULTS}/{BASE_STUDY}/report/table1.csv",
        )
    return str(PurePosixPath(RESULTS, path.relative_to(results)))


def find_cell(path: Path, asked: str) -> tuple[str, Any]:
    """Name and value of the cell of a table or page that `asked` names, wholly or by its words.

    Cells of a figure are its points, which stand as numbers in the CSV file beside it.

    Raises:
        InputError: the file has no cells, or none or several fit.
    """
    beside = path.with_suffix(".csv")
    if path.suffix in PICTURES and beside.is_file():
        path = beside
    try:
        cells = cells_of(path)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read ({error})", how_to_make(path)) from error
    if cells is None:
        raise InputError(f"{path} has no cells", "trace the file: leave the name of a cell away")
    if asked in cells:
        return asked, cells[asked]
    words = asked.casefold().split()
    fitting = [name for name in cells if all(word in name.casefold() for word in words)]
    if len(fitting) == 1:
        return fitting[0], cells[fitting[0]]
    some = fitting or list(cells)
    shown = "\n  ".join(some[:CHOICES])
    more = f"\n  and {len(some) - CHOICES} more" if len(some) > CHOICES else ""
    raise InputError(
        f"{len(fitting) or 'no'} cells of {path} fit {asked!r}", f"name one of\n  {shown}{more}"
    )


def trace_file(records: Sequence[Record], root: Path, path: str) -> Origin:
    """The jobs and files behind `path`, from the records of its study.

    Args:
        records: of the study, and of those that it is made from.
        root: the checkout.
        path: relative to it.

    Raises:
        InputError: no record says that a job made it.
    """
    (origin,) = trace_files(records, root, [path], {})
    return origin


def trace_files(
    records: Sequence[Record], root: Path, paths: Sequence[str], hashes: Mapping[str, str]
) -> list[Origin]:
    """The same of several files; a job behind more than one stands in full with the first.

    Args:
        hashes: file -> SHA-256 of what lies there now, where it is known; others are read.
    """
    made = producers(records)
    now, told = dict(hashes), set[str]()
    origins = []
    for path in paths:
        if path not in made:
            raise InputError(
                f"no record of a job says that it made {path}",
                "give a file of results/STUDY as the report names it, relative to the checkout",
            )
        wrote = next(file for file in made[path].outputs if file.path == path)
        origins.append(_origin(wrote, made, root, now, told))
    return origins


def as_tree(origin: Origin, title: str) -> Tree:
    """For a terminal: a line a file with its job, a line with that job's parameters."""
    tree = Tree(escape(title), guide_style="dim")
    _add(tree, origin)
    return tree


def as_plain(origin: Origin) -> dict[str, Any]:
    """The same as plain values, jobs in full."""
    files = {file.path: {"sha256": file.sha256, "now": file.now} for file in origin.files()}
    return {"files": files, "jobs": [job.model_dump(mode="json") for job in origin.jobs()]}


def _origin(
    file: File, made: Mapping[str, Record], root: Path, now: dict[str, str], told: set[str]
) -> Origin:
    path = root / file.path
    if file.path not in now:
        now[file.path] = sha256_of(path) if path.is_file() else ""
    state = {file.sha256: "as recorded", "": "missing"}.get(now[file.path], "other bytes")
    job = made.get(file.path)
    if job is None:
        return Origin(file.path, file.sha256, state, None, (), again=False)
    if job.path in told:
        return Origin(file.path, file.sha256, state, job, (), again=True)
    told.add(job.path)
    inputs = tuple(_origin(each, made, root, now, told) for each in job.inputs)
    return Origin(file.path, file.sha256, state, job, inputs, again=False)


def _add(tree: Tree, origin: Origin) -> None:
    state = "" if origin.now == "as recorded" else f" [red]{origin.now}[/]"
    job = origin.job
    if job is not None:
        made = f"[dim]by {escape(job.job)}{', see above' if origin.again else ''}[/]"
    elif origin.path.startswith(f"{RESULTS}/"):  # its record is gone or cannot be read
        made = "[red]no record says what made it[/]"
    else:
        made = "[dim]from outside[/]"
    line = f"{escape(origin.path)}  {origin.sha256[:DIGITS]}{state}  {made}"
    node = tree.add(line)
    if job is None or origin.again:
        return
    node.add(f"[dim]{escape(facts(job))}, {job.started:%Y-%m-%d %H:%M}[/]")
    if job.parameters:
        node.add(f"[dim]{escape(_cut(_parameters(job)))}[/]")
    for each in origin.inputs:
        _add(node, each)


def facts(job: Record) -> str:
    """What a job ran, and on what."""
    commit = str(job.git.get("commit"))[:DIGITS]
    changed = " with changes" if job.git.get("dirty") else ""
    packages = len(job.environment.packages)
    return (
        f"code {job.command[0]} {job.code.fingerprint[:DIGITS]} ({len(job.code.files)} files), "
        f"commit {commit}{changed}, Python {job.environment.python}, {packages} packages, "
        f"{machine(job)}"
    )


def _parameters(job: Record) -> str:
    return ", ".join(f"{key} = {value}" for key, value in job.parameters.items())


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."

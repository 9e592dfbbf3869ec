"""Run recorded jobs again, in a folder of their own, on the inputs that lie in the results."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mechdistill.audit.record import Record
from mechdistill.errors import InputError
from mechdistill.provenance.run import start_script


@contextmanager
def workplace() -> Iterator[Path]:
    """An empty folder, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="mechdistill-audit-") as folder:
        yield Path(folder)


def run_again(
    record: Record,
    root: Path,
    folder: Path,
    environment: Mapping[str, str],
    code: Path | None = None,
) -> None:
    """Run the recorded job in `folder`, where its outputs appear under their own paths.

    Inputs that `folder` already holds, from jobs run there before, are taken from there, all
    others from `root`, which is not changed.

    Args:
        record: of the job.
        root: the checkout, or the exported study.
        folder: where it runs.
        environment: the driver's (`reproduce.warm_process`): scripts are forked from its warm
            process.
        code: the checkout whose script runs where `root` is an exported study. Its records are a
            stranger's: their commands may name nothing outside.

    Raises:
        InputError: an input is missing, the script fails, or the command leads outside.
    """
    if code is not None:
        _refuse_leading_out(record)
    for file in record.inputs:
        _link(root / file.path, folder / file.path)
    report = folder / f"{record.name}.report"
    script, *rest = record.command
    arguments = [
        *(str(report), str((code or root) / script), *rest),
        *("--params", json.dumps(record.parameters)),
    ]
    child = start_script(arguments, environment, record.threads, folder)
    assert child.stdout is not None
    said = child.stdout.read().splitlines()
    status = child.wait()
    failure = json.loads(report.read_text(encoding="utf-8"))["failure"] if report.exists() else None
    if status or failure:
        what = failure["what"] if failure else (said or ["it said nothing"])[-1]
        raise InputError(f"{script} does not run again: {what}", "see what it names")


def other_outputs(record: Record, root: Path, folder: Path) -> list[str]:
    """Outputs of the job whose bytes in `folder` are not those in the checkout at `root`."""
    return [
        file.path
        for file in record.outputs
        if (root / file.path).is_file()
        and (folder / file.path).read_bytes() != (root / file.path).read_bytes()
    ]


def in_order(records: Sequence[Record]) -> list[Record]:
    """The jobs, each after those whose files it reads."""
    made = {file.path: record for record in records for file in record.outputs}
    order: dict[str, Record] = {}

    def visit(record: Record, above: frozenset[str]) -> None:
        if record.path in order or record.path in above:  # forged records may form a ring
            return
        for file in record.inputs:
            if file.path in made:
                visit(made[file.path], above | {record.path})
        order[record.path] = record

    for record in records:
        visit(record, frozenset())
    return list(order.values())


def _refuse_leading_out(record: Record) -> None:
    script, *rest = record.command
    values = [word.rpartition("=")[2] for word in rest]
    outside = [path for path in values if path.startswith(("/", "~")) or ".." in Path(path).parts]
    if script != f"workflow/scripts/{record.rule}.py":
        outside.insert(0, script)
    if outside:
        raise InputError(
            f"{record.path} names {outside[0]} in its command, which is no file of the study",
            "do not trust this crate",
        )


def _link(target: Path, link: Path) -> None:
    if not target.is_file() and not link.exists():
        raise InputError(f"{target} is missing", "make it, then audit again")
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)

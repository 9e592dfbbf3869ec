"""The command `mechdistill`: what is asked of a checkout and of finished results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mechdistill.artifacts import BASE_STUDY, RESULTS
from mechdistill.audit.check import audit as audit_study
from mechdistill.audit.check import audit_crate
from mechdistill.audit.crate import crate_folder
from mechdistill.audit.record import all_records
from mechdistill.audit.trace import as_plain, as_tree, find_cell, relative_path, trace_file
from mechdistill.doctor import described, examine, members
from mechdistill.errors import InputError
from mechdistill.export.crate import export_study
from mechdistill.planning.plan import as_table, jobs_of, plan_study
from mechdistill.reproduce import refuse_other_folder

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Ask about a study and its results, in the folder of the checkout."""


@app.command()
def audit(
    study: Annotated[
        str, typer.Argument(help="its results lie in results/STUDY; or the folder of an export")
    ] = BASE_STUDY,
    as_json: Annotated[bool, typer.Option("--json", help="findings as JSON")] = False,
    bytes_only: Annotated[
        bool, typer.Option("--bytes-only", help="do not derive the report's numbers once more")
    ] = False,
    replay: Annotated[
        int, typer.Option(min=0, metavar="N", help="run N random jobs again and compare")
    ] = 0,
) -> None:
    """Verify results by their bytes, records, code and rows. Exit status 0 only when clean."""
    root = Path.cwd()
    try:
        refuse_other_folder(root)
        crate = crate_folder(root, study)
        if crate is None:
            verdict = audit_study(root, study, numbers=not bytes_only, replay=replay)
        elif replay:
            raise InputError("--replay is for results of this checkout", "leave it away")
        else:
            verdict = audit_crate(crate, root, numbers=not bytes_only)
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    typer.echo(json.dumps(verdict.to_json(), indent=1) if as_json else str(verdict))
    raise typer.Exit(0 if verdict.clean else 1)


@app.command()
def export(
    study: Annotated[str, typer.Argument(help="its results lie in results/STUDY")],
    out: Annotated[Path, typer.Argument(help="the folder to make")],
    with_findings: Annotated[
        bool, typer.Option("--with-findings", help="export even what an audit finds wrong")
    ] = False,
) -> None:
    """Write a finished study as a Workflow Run RO-Crate that others can audit."""
    root = Path.cwd()
    try:
        refuse_other_folder(root)
        done = export_study(root, study, out, with_findings=with_findings)
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    stayed = f", {done.kept_back} kept back (restricted data)" if done.kept_back else ""
    typer.echo(
        f"{out}: {done.files} files of results{stayed}, {done.bytes / 1e6:.0f} MB, "
        f"{done.findings or 'no'} findings\nto look at it again: mechdistill audit {out}"
    )


@app.command()
def trace(
    file: Annotated[Path, typer.Argument(help="a table, figure or other file of results/STUDY")],
    cell: Annotated[
        str | None, typer.Argument(help="name of a cell, or words of it: 'mech f1'")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="hashes and jobs in full")] = False,
) -> None:
    """Show all jobs and files behind a file, or behind the number in one cell of it."""
    root = Path.cwd()
    try:
        refuse_other_folder(root)
        path = relative_path(root, file)
        found = None if cell is None else find_cell(root / path, cell)
        origin = trace_file(all_records(root), root, path)
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if as_json:
        asked = {} if found is None else {"cell": found[0], "value": found[1]}
        typer.echo(json.dumps(asked | as_plain(origin), indent=1, default=str))
    else:
        title = path if found is None else f"{found[0]} = {found[1]}"
        Console(soft_wrap=True).print(as_tree(origin, title))


@app.command()
def doctor(
    study: Annotated[str, typer.Argument(help="that is to run here")] = BASE_STUDY,
) -> None:
    """Look whether a study can run here. Exit status 0 only when nothing is wrong."""
    root = Path.cwd()
    try:
        refuse_other_folder(root)
        faults = examine(root, study)
        for line in described(root, members(root, study)):
            typer.echo(f"       {line}")
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    for fault in faults:
        typer.echo(str(fault))
    typer.echo(f"{len(faults) or 'no'} fault{'' if len(faults) == 1 else 's'} found for {study}")
    raise typer.Exit(1 if faults else 0)


@app.command()
def plan(
    study: Annotated[str, typer.Argument(help="of which all jobs are planned")] = BASE_STUDY,
    as_json: Annotated[bool, typer.Option("--json", help="seconds, bytes, FLOPs as JSON")] = False,
    device: Annotated[
        str | None, typer.Option(help="cpu or gpu; else by the teacher's size")
    ] = None,
) -> None:
    """Say what a study will cost, before anything runs: jobs, tokens, FLOPs, hours, memory, disk.

    Estimates by formulas on models and sizes (docs/planning.md); hours are those of cores,
    or of GPUs.
    """
    root = Path.cwd()
    try:
        refuse_other_folder(root)
        if device not in (None, "cpu", "gpu"):
            raise InputError(f"--device is {device}", "give cpu or gpu, or leave it out")
        plans = [
            plan_study(one, jobs_of(one.study, root), root, device) for one in members(root, study)
        ]
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in plans], indent=1))
    else:
        console = Console()
        console.width = max(console.width, 100)  # no number is cut, however narrow the terminal
        for one in plans:
            console.print(as_table(one))


@app.command("export-teacher")
def export_teacher(
    study: Annotated[str, typer.Argument(help="whose teacher is trained already")],
    folder: Annotated[Path, typer.Argument(help="to write; must be new or empty")],
) -> None:
    """Write a study's teacher as a folder that vLLM or `transformers serve` can hold."""
    # heavy: no other command needs models
    from mechdistill.models.servable import write_servable

    root = Path.cwd()
    results = Path(RESULTS, study)
    teacher = results / "teacher"
    try:
        refuse_other_folder(root)
        write_servable(
            teacher / "model.safetensors",
            teacher / "config.json",
            results / "data" / "tokenizer.json",
            folder,
        )
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    typer.echo(f"written: {folder} (docs/teachers.md says how to serve it)")


def audit_alone() -> None:
    """The subcommand as a program of its own."""
    typer.run(audit)

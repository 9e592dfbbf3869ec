"""dvc.yaml from Snakemake's graph: one stage a rule, so that DVC can store, fetch and compare.

`python -m mechdistill.dvc_stages` writes it, `--check` says whether it is that of the workflow.
A stage starts Snakemake, which decides what really has to run; DVC keeps the files (`persist`:
it must not delete them first) and records what each stage read: files, code and parameters.
"""

from __future__ import annotations

import argparse
import graphlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import yaml

from mechdistill.errors import InputError
from mechdistill.joined_study import is_joined, load_joined_study
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.run import Job, parse
from mechdistill.study_errors import Layer
from mechdistill.study_files import base_name, read_overlay, study_layers

STAGES_FILE = "dvc.yaml"
METRICS = "report/metrics.json"
"""What `dvc metrics` compares."""
PLOTS = "report/figure*.png"
"""What `dvc plots` shows side by side."""
NO_COMMAND = "Shell command: None"
"""Said of a rule that only gathers files."""
HEADER = """\
# Written by `make stages` from the rules of the workflow: do not edit.
# One stage a rule; Snakemake decides what runs. `dvc repro` is a second way to `snakemake`.
"""


@dataclass
class Stage:
    """What all jobs of a rule read and write, paths relative to the repository."""

    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    code: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check dvc.yaml; exit status 1 when it is not that of the workflow."""
    parser = argparse.ArgumentParser(prog="python -m mechdistill.dvc_stages", description=__doc__)
    parser.add_argument("--study", help="default: that of params.yaml")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    root = Path.cwd()
    try:
        text = stages_text(root, options.study)
        if options.check:
            check(root, text)
        else:
            (root / STAGES_FILE).write_text(text, encoding="utf-8")
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def check(root: Path, text: str) -> None:
    """Raises InputError when dvc.yaml under `root` differs from `text`."""
    path = root / STAGES_FILE
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        raise InputError(f"{STAGES_FILE} is not that of the workflow", "Run `make stages`.")


def stages_text(root: Path, study: str | None) -> str:
    """The text of dvc.yaml for `study` (None: that of params.yaml) of the repository at `root`."""
    name = study or base_name(root)
    layers = _layers(name, root)
    jobs = jobs_of_dry_run(dry_run(root, name))
    stages = stages_of(jobs, SourceTree(root), root)
    # restricted: DVC neither keeps a copy nor sends one anywhere
    restricted = any(job.restricted for _, job in jobs)
    stored = {"persist": True} | ({"cache": False} if restricted else {})
    config = f" --config study={name}" if name != base_name(root) else ""
    document: dict[str, Any] = {
        "stages": {
            rule: {
                "cmd": f"snakemake --cores 2 --until {rule}{config}",
                "deps": sorted(stages[rule].inputs | stages[rule].code),
                "params": _parameter_files(stages[rule].parameters, layers),
                "outs": [{path: dict(stored)} for path in sorted(stages[rule].outputs)],
            }
            for rule in in_order(stages)
        }
    }
    for stage in document["stages"].values():
        if not stage["params"]:
            del stage["params"]  # DVC takes no empty list
    made = sorted(path for stage in stages.values() for path in stage.outputs)
    for key, pattern in (("metrics", METRICS), ("plots", PLOTS)):
        if found := [path for path in made if PurePath(path).match(pattern)]:
            document[key] = found
    return HEADER + yaml.safe_dump(document, sort_keys=False, width=100)


def dry_run(root: Path, study: str) -> str:
    """What `snakemake -n` says about every job of `study`, whatever is there already."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--forceall", "--printshellcmds"]
    command += ["--quiet", "host", "--nolock", "--config", f"study={study}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(
            f"snakemake cannot make the graph of study {study}:\n{done.stdout}{done.stderr}",
            "Mend what it names.",
        )
    return done.stdout


def jobs_of_dry_run(said: str) -> list[tuple[str, Job]]:
    """Every job's rule and its run wrapper's command line, from the text of a dry run.

    Raises InputError for a rule that does not start through the run wrapper.
    """
    jobs = []
    rule = ""
    for line in said.splitlines():
        if match := re.fullmatch(r"(?:local)?rule (\w+):", line):
            rule = match[1]
        elif line.startswith("Shell command: ") and line != NO_COMMAND:
            words = shlex.split(line.removeprefix("Shell command: "))
            if words[:3] != ["python", "-m", "mechdistill.provenance.run"]:
                raise InputError(
                    f"rule {rule} does not start its script through mechdistill.provenance.run",
                    "Write its command with job() of workflow/rules/jobs.smk.",
                )
            jobs.append((rule, parse(words[3:])))
    return jobs


def stages_of(jobs: Iterable[tuple[str, Job]], sources: SourceTree, root: Path) -> dict[str, Stage]:
    """The jobs of each rule as one stage."""
    stages: dict[str, Stage] = {}
    for rule, job in jobs:
        stage = stages.setdefault(rule, Stage())
        stage.inputs.update(job.inputs)
        stage.outputs.update(job.outputs)
        stage.parameters.update(json.loads(job.params))
        files = sources.closure(job.script, *job.also)
        stage.code.update(_package_or_file(path.relative_to(root.resolve())) for path in files)
    return stages


def _package_or_file(path: Path) -> str:
    """The package (`src/mechdistill/heads`) that a module is in, else the file itself.

    By package, so that the file stays short and a new import seldom changes it; what it then marks
    too much, Snakemake finds up to date.
    """
    inside_a_package = path.parts[0] == "src" and len(path.parts) > 3
    return "/".join(path.parts[:3]) if inside_a_package else str(path)


def in_order(stages: Mapping[str, Stage]) -> list[str]:
    """Rules, each after those whose files it reads, else by name.

    Raises InputError when two rules need each other's files: one stage a rule is impossible then.
    """
    maker = {path: rule for rule, stage in stages.items() for path in stage.outputs}
    needs = {
        rule: {maker[path] for path in stages[rule].inputs if path in maker} for rule in stages
    }
    sorter = graphlib.TopologicalSorter(needs)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        raise InputError(
            f"rules need each other's files: {' -> '.join(error.args[1])}",
            "Split one of them into two rules.",
        ) from error
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order


def _layers(name: str, root: Path) -> list[Layer]:
    """The files that a study is written in; of a joined one also those of its members."""
    if not is_joined({"study": name}, root):
        return study_layers(name, root)
    joined = load_joined_study({"study": name}, root)
    layers = [layer for m in joined.members for layer in study_layers(m.name, root)]
    return list({layer.source: layer for layer in [*layers, read_overlay(name, root)]}.values())


def _parameter_files(keys: Iterable[str], layers: Sequence[Layer]) -> list[Any]:
    """DVC's `params`: the keys of params.yaml, and those that each overlay writes too."""
    ordered = sorted(keys)
    listed: list[Any] = [key for key in ordered if _has(layers[0].values, key)]
    for layer in layers[1:]:
        if above := [key for key in ordered if _has(layer.values, key)]:
            listed.append({layer.source: above})
    return listed


def _has(values: Mapping[str, Any], key: str) -> bool:
    here: Any = values
    for part in key.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return False
        here = here[part]
    return True


if __name__ == "__main__":
    sys.exit(main())

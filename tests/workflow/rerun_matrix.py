"""The rerun matrix: over every leaf of the schema, what Snakemake would run and what it should.

    python -m tests.workflow.rerun_matrix                 all of it, to docs/reruns/matrix.csv
    python -m tests.workflow.rerun_matrix --leaf KEY ...  these leaves alone

Which jobs should run follows from two facts of each job, as its command tells them: the keys of
the parameters that it declares, and the files that it reads and writes. A job depends on a leaf if
it declares the leaf or a section around it, or reads a file of a job that does.

No model is run. In a clone of the repository every study gets placeholders for its results, which
`snakemake --touch` takes for finished; then each leaf is changed alone and Snakemake is asked what
it would do. Snakemake is imported once and forks a process for every question.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mechdistill.dvc_stages import jobs_of_dry_run
from mechdistill.provenance import metadata
from mechdistill.provenance.run import Job
from mechdistill.study import load_study
from tests.workflow.conftest import REPOSITORY, clone
from tests.workflow.leaves import (
    LISTS,
    UNCHANGEABLE,
    ZERO,
    leaves,
    other_value,
    override,
    shown,
    there,
    value,
)

TABLE = Path("docs", "reruns", "matrix.csv")
COLUMNS = ("leaf", "study", "before", "after", "own", "all", "rules", "agree")

SMALL = {"distil": {"methods": ["vanilla"], "seeds": [0]}}
WINDOWS = {
    **{"family": "gemma3_text", "sliding_window": 16, "full_attention_every": 2},
    "sliding_rope_theta": 100.0,
}
SERVER = {
    **{"base_url": "http://localhost:8000/v1", "model": "a", "concurrency": 2, "timeout": 9.0},
    **{"requests_per_second": None, "retries": 1, "restricted_data_may_leave": False},
}
CHECKPOINT = {"name": "a/b", "files": {"model.safetensors": "0" * 64}}
T5 = {"kind": "t5", "checkpoint": {"kind": "folder", "revision": None, **CHECKPOINT}}
T5_OF_HUB = {"kind": "t5", "checkpoint": {"kind": "hub", "revision": "main", **CHECKPOINT}}

CASES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "smoke": ("smoke", {}),
    "methods": (
        "smoke",
        {
            "distil": {
                "methods": [
                    *("vanilla_positions", "mech", "unicott", "morsd", "semcot", "cwt"),
                    "mistill",
                ],
                "seeds": [0],
                "tuning": {"settings": 2},
            }
        },
    ),
    "windows": ("smoke", {"teacher": {"architecture": WINDOWS}, "distil": {"student": WINDOWS}}),
    "lists": ("smoke", {"data": {"candidates": {**LISTS, "sweep": [30]}}}),
    "tokenizer": (
        "smoke",
        {"distil": {"student_tokenizer": {"model": "bpe", "vocabulary": 800}}},
    ),
    "deepspeed": ("smoke", {"distil": {"deepspeed": ZERO}}),
    "recovery": ("smoke", {"evaluate": {"recovery_notes": 6}}),
    "t5": ("smoke", {"evaluate": {"simulator": T5}}),
    "served": ("smoke", {"teacher": {"generation": {"backend": "server", "server": SERVER}}}),
    "titles": ("foldoc", SMALL),
    "checkpoint": ("pretrained", SMALL),
    "hub": (
        "pretrained",
        {"teacher": {"checkpoint": {"kind": "hub", "revision": "main"}}, **SMALL},
    ),
    "t5-of-hub": ("smoke", {"evaluate": {"simulator": T5_OF_HUB}}),
    "articles": ("paper-wikiseealso", {"report": {"worked_example": None}, **SMALL}),
    "summaries": ("paper-mimic-iii", SMALL),
}
"""Studies that the leaves are changed in: the overlay that each extends, and what it changes."""

AGAIN: dict[str, tuple[str, ...]] = {
    "methods": (
        *("distil.methods", "distil.position_weight", "distil.unicott", "distil.morsd"),
        *("distil.semcot", "distil.cwt", "distil.mistill", "distil.tuning"),
        "distil.teacher_top_k",
    ),
    "checkpoint": ("data.prompt", "teacher.seed", "traces", "heads.batch_size", "heads.minimum"),
    "articles": ("data.world", "data.prompt", "data.splits"),
}
"""Leaves that a case is asked about even though one before it has them, by how they begin."""


@dataclass(frozen=True)
class Row:
    """One leaf changed alone."""

    leaf: str
    study: str
    before: Any
    after: Any
    own: frozenset[str]
    """Jobs that declare it."""
    expected: frozenset[str]
    planned: frozenset[str]
    rules: tuple[str, ...]

    @property
    def agree(self) -> bool:
        return self.expected == self.planned


class Refused(Exception):
    """Snakemake ended with an error; what it said."""


def ask(root: Path, study: str, overrides: Mapping[str, Any], *options: str) -> str:
    """What Snakemake says in a forked process, in which nothing of an earlier question is left."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = os.fork()
        if process == 0:
            status = 1
            try:
                os.chdir(root)
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                status = _snakemake(study, overrides, options)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(process, 0)
        said.seek(0)
        text = said.read()
    if status:
        raise Refused(f"study {study} with {overrides}:\n{text}")
    return text


def _snakemake(study: str, overrides: Mapping[str, Any], options: Sequence[str]) -> int:
    from snakemake.cli import main

    # in a file: within the values of --config everything is text
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as given:
        json.dump({"study": study, **overrides}, given)
        given.flush()
        try:
            main([*options, "--quiet", "host", "--nolock", "--configfile", given.name])
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def planned(
    root: Path, study: str, overrides: Mapping[str, Any], *options: str
) -> dict[str, tuple[str, Job]]:
    """Jobs that would run, with their rules, by the names of their logs."""
    said = ask(root, study, overrides, "--dry-run", "--printshellcmds", *options)
    return {job.log.stem: (rule, job) for rule, job in jobs_of_dry_run(said)}


def declares(job: Job, leaf: str) -> bool:
    """Whether the job declares the leaf, or a section around it."""
    return any(f"{leaf}.".startswith(f"{key}.") for key in json.loads(job.params))


def with_what_follows(first: Iterable[str], jobs: Mapping[str, Job]) -> frozenset[str]:
    """The jobs of `first` and all that read, directly or not, what these write."""
    reached = set(first)
    while True:
        written = {path for name in reached for path in jobs[name].outputs}
        more = {name for name, job in jobs.items() if written & set(job.inputs)} - reached
        if not more:
            return frozenset(reached)
        reached |= more


def told_apart(before: Mapping[str, Job], after: Mapping[str, Job]) -> set[str]:
    """Jobs of the graph `after` that the graph `before` does not have, or has otherwise."""
    return {name for name, job in after.items() if before.get(name) != job}


def compare(root: Path, study: str, leaf: str, other: Any, jobs: Mapping[str, Job]) -> Row:
    """What should run, and what would."""
    changed = override(leaf, None if other == "null" else other)
    would = planned(root, study, changed)
    own = frozenset(name for name, job in jobs.items() if declares(job, leaf))
    expected = with_what_follows(own, jobs)
    if would.keys() != expected:  # the leaf may change the graph itself
        graph = {n: job for n, (_, job) in planned(root, study, changed, "--forceall").items()}
        if _shape(graph) != _shape(jobs):
            expected = with_what_follows(told_apart(jobs, graph), graph)
    now = value(load_study({"study": study}, root).model_dump(mode="json"), leaf)
    rules = tuple(sorted({rule for rule, _ in would.values()}))
    after = None if other == "null" else other
    return Row(leaf, study, now, after, own, expected, frozenset(would), rules)


def _shape(jobs: Mapping[str, Job]) -> dict[str, tuple[Any, ...]]:
    return {n: (*sorted(j.inputs), "", *sorted(j.outputs), j.restricted) for n, j in jobs.items()}


def finish(root: Path, study: str) -> None:
    """Give `study` placeholders for all its results, with the notes of finished jobs."""
    for _, job in planned(root, study, {}, "--forceall").values():
        for output in job.outputs:
            path = root / output
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"placeholder of {output}\n", encoding="utf-8")
    # results without notes are refused, and here notes are about to be made
    refuse, metadata.refuse_unrecorded_results = metadata.refuse_unrecorded_results, _let_pass
    try:
        ask(root, study, {}, "--touch", "--forceall", "--cores", "1")
    finally:
        metadata.refuse_unrecorded_results = refuse


def _let_pass(root: Path, study: str) -> None:
    pass


def write_case(root: Path, name: str) -> str:
    """The overlay of a case; its name."""
    below, changes = CASES[name]
    if name == below:
        return name
    overlay = {"study": f"case-{name}", "extends": [below], **changes}
    (root / "studies" / f"case-{name}.yaml").write_text(yaml.safe_dump(overlay), encoding="utf-8")
    return f"case-{name}"


def questions(root: Path, only: Sequence[str] = ()) -> dict[str, list[tuple[str, Any]]]:
    """Leaf and other value to ask about, by case; each in the first case that can change it."""
    asked: dict[str, list[tuple[str, Any]]] = {}
    seen: set[str] = set()
    for name in CASES:
        study = write_case(root, name)
        values = load_study({"study": study}, root).model_dump(mode="json")
        for leaf, kind in leaves():
            done = leaf in seen and not leaf.startswith(AGAIN.get(name, ()))
            if done or (only and leaf not in only) or not there(values, leaf):
                continue
            if (other := other_value(values, leaf, kind)) is not None:
                asked.setdefault(name, []).append((leaf, other))
                seen.add(leaf)
    return asked


def never_asked(asked: Mapping[str, Sequence[tuple[str, Any]]]) -> set[str]:
    """Leaves of the schema that no case changes."""
    return {leaf for leaf, _ in leaves()} - {leaf for row in asked.values() for leaf, _ in row}


def rows(
    root: Path, asked: Mapping[str, Sequence[tuple[str, Any]]], finished: Sequence[str] = ()
) -> Iterable[Row]:
    """Every question's answer. Studies other than the `finished` get placeholders first."""
    for name, pairs in asked.items():
        study = write_case(root, name)
        if study not in finished:
            finish(root, study)
        if would := planned(root, study, {}):
            raise RuntimeError(f"{study} is finished, and Snakemake would run {sorted(would)}")
        jobs = {n: job for n, (_, job) in planned(root, study, {}, "--forceall").items()}
        for leaf, other in pairs:
            try:
                yield compare(root, study, leaf, other, jobs)
            except Refused as refusal:
                print(f"NOT ASKED, {leaf}: {refusal}", flush=True)


def tell(row: Row) -> None:
    """One line; where they differ, in which jobs."""
    print(
        f"{row.study} {row.leaf}: {shown(row.before)} -> {shown(row.after)}: "
        f"{len(row.planned)} jobs {'as expected' if row.agree else 'NOT AS EXPECTED'}",
        flush=True,
    )
    if not row.agree:
        print(f"  not planned: {sorted(row.expected - row.planned)}")
        print(f"  not expected: {sorted(row.planned - row.expected)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leaf", nargs="*", default=[], help="these leaves alone")
    parser.add_argument("--checkout", type=Path, help="where smoke is finished (default: a clone)")
    options = parser.parse_args(arguments)
    import snakemake.cli  # noqa: F401  once, for all forks

    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="reruns-") as folder:
        root = options.checkout or clone(Path(folder) / "mechdistill").root
        asked = questions(root, options.leaf)
        if not options.leaf and never_asked(asked) != set(UNCHANGEABLE):
            odd = sorted(never_asked(asked) ^ set(UNCHANGEABLE))
            print(f"UNCHANGEABLE of tests/workflow/leaves.py is not what it should be: {odd}")
            return 1
        answers = []
        for row in rows(root, asked, finished=["smoke"] if options.checkout else []):
            tell(row)
            answers.append(row)
    wrong = [row for row in answers if not row.agree]
    unanswered = {leaf for pairs in asked.values() for leaf, _ in pairs}
    unanswered -= {row.leaf for row in answers}
    if unanswered:
        print(f"no answer about {', '.join(sorted(unanswered))}")
    print(
        f"{len(answers)} changes of {len({row.leaf for row in answers})} leaves, "
        f"{len(wrong)} not as expected, {time.monotonic() - begin:.0f} s"
    )
    if not options.leaf:
        write(REPOSITORY / TABLE, answers)
    return int(bool(wrong or unanswered))


def write(path: Path, answers: Iterable[Row]) -> None:
    """The table of docs/reruns.md."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for row in answers:
            values = (shown(row.before), shown(row.after), len(row.own), len(row.planned))
            agree = "yes" if row.agree else "no"
            table.writerow([row.leaf, row.study, *values, " ".join(row.rules), agree])


if __name__ == "__main__":
    sys.exit(main())

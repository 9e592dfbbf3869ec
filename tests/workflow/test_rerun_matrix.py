"""Some leaves of the rerun matrix on the finished study; `make reruns` asks about all of them."""

from __future__ import annotations

import csv
import random
import subprocess

import pytest

from mechdistill.provenance.run import Job, parse
from mechdistill.study import load_study

from .conftest import REPOSITORY, Checkout
from .leaves import UNCHANGEABLE, leaves, other_value, override, there, value, with_value
from .rerun_matrix import TABLE, declares, told_apart, with_what_follows

ASKED = 4
"""Leaves drawn for one run of the tests, beside those that the stored table does not have yet."""

STUDY = load_study({"study": "smoke"}, REPOSITORY).model_dump(mode="json")


def draw() -> list[str]:
    """Leaves that the stored table does not have yet, and others by the commit: each its own."""
    known = {leaf for leaf, _ in leaves()} - set(UNCHANGEABLE)
    stored = known
    if (REPOSITORY / TABLE).is_file():  # written by `make reruns`
        with (REPOSITORY / TABLE).open(encoding="utf-8") as file:
            stored = {row["leaf"] for row in csv.DictReader(file)}
    commit = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    here = [leaf for leaf in sorted(known & stored) if there(STUDY, leaf)]
    return [*random.Random(commit.stdout).sample(here, ASKED), *sorted(known - stored)[:ASKED]]


@pytest.mark.workflow
@pytest.mark.long
def test_changed_leaves_rerun_what_the_dependency_table_says(shared_copy: Checkout) -> None:
    asked = draw()
    options = ("--checkout", str(shared_copy.root), "--leaf", *asked)
    done = Checkout(REPOSITORY).run("tests.workflow.rerun_matrix", *options)
    assert done.returncode == 0, done.stdout
    for leaf in asked:
        assert f" {leaf}: " in done.stdout


def job(params: str, inputs: str, outputs: str) -> Job:
    words = ["--params", params, "--code", "0", "--inputs", *inputs.split()]
    return parse([*words, "--outputs", *outputs.split(), "--log", "logs/x/y.log", "--", "s.py"])


JOBS = {
    "make": job('{"data.world":{"a":1},"seed":7}', "", "notes"),
    "train": job('{"teacher":{"steps":3}}', "notes", "weights curve"),
    "show": job('{"report.worked":1}', "curve", "figure"),
    "other": job('{"data.worlds":1}', "", "elsewhere"),
}


@pytest.mark.parametrize(
    ("leaf", "jobs"),
    [
        ("seed", {"make"}),
        ("data.world.a", {"make"}),
        ("data.worlds", {"other"}),
        ("teacher.steps", {"train"}),
        ("teacher", {"train"}),
        ("report.worked_example", set()),
        ("report", set()),
    ],
)
def test_a_job_declares_a_leaf_or_a_section_around_it(leaf: str, jobs: set[str]) -> None:
    assert {name for name, job in JOBS.items() if declares(job, leaf)} == jobs


def test_what_reads_a_file_of_a_job_follows_it() -> None:
    assert with_what_follows({"make"}, JOBS) == {"make", "train", "show"}
    assert with_what_follows({"show"}, JOBS) == {"show"}
    assert with_what_follows(set(), JOBS) == set()


def test_jobs_of_another_graph_are_told_apart() -> None:
    after = {**JOBS, "train": job('{"teacher":{"steps":3}}', "notes more", "weights curve")}
    after["new"] = job("{}", "", "extra")
    assert told_apart(JOBS, after) == {"train", "new"}


def test_every_leaf_of_the_study_has_another_legal_value_or_a_reason_why_not() -> None:
    for leaf, kind in leaves():
        if leaf in UNCHANGEABLE or not there(STUDY, leaf):
            continue
        other = other_value(STUDY, leaf, kind)
        window = leaf.partition("architecture.")[2] or leaf.partition("student.")[2]
        if window in ("sliding_window", "full_attention_every", "sliding_rope_theta"):
            assert other is None, f"{leaf}: llama has no windows"
        else:
            assert other is not None, leaf
            other = None if other == "null" else other
            assert value(with_value(STUDY, leaf, other), leaf) != value(STUDY, leaf)


def test_override_is_nested() -> None:
    assert override("a.b.c", 1) == {"a": {"b": {"c": 1}}}

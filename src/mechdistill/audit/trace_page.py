"""The trace of all that a report shows, as one page: what its numbers link to."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path, PurePosixPath

from markupsafe import Markup

from mechdistill.artifacts import RESULTS
from mechdistill.audit.check import Evidence
from mechdistill.audit.page import render
from mechdistill.audit.record import Record, producers
from mechdistill.audit.replay import TIMED
from mechdistill.audit.trace import DIGITS, PICTURES, Origin, facts, trace_files
from mechdistill.joined_study import JoinedStudy
from mechdistill.report.links import anchor, row_anchor

SHOWN = {
    "tables": ("Tables of methods", "report/measures.csv"),
    "patching": ("Table 6, patching", "patching/summary.parquet"),
    "agreement": ("Table 7, scores and causal effects", "heads/causal_agreement.parquet"),
    **{
        f"figure{n}": (f"Figure {n}", f"report/figure{n}.png")
        for n in (1, 4, 5, 7, 8, 10, 11, 12, 13, 14)
    },
    "decision-heads": ("Table 10, heads at decisions", "patching/head_effects.parquet"),
    "decision-sets": ("Table 11, sets of heads", "patching/head_sets.parquet"),
    "knock-in": ("Table 12, decisions carried over", "patching/knock_in.parquet"),
    "event-attention": (
        "Table 13, what heads attend to at decisions",
        "patching/event_attention.parquet",
    ),
    "elicitation": ("Table 14, probes before decisions", "patching/elicitation_probe.parquet"),
    "eliciting-heads": ("Table 14, heads before decisions", "patching/elicitation_sets.parquet"),
    "claims": ("Claims", "report/claims.csv"),
    "manipulation": ("Corruptions", "patching/manipulation.parquet"),
    "decisions": ("Decisions of the teacher", "teacher/events.parquet"),
    "predictions": ("Predictions", "evaluate/predictions.parquet"),
    "budget": ("Budgets", "report/budget.csv"),
    "page": ("The report", "report/report.html"),
}
"""Place on the page -> title and file, of what the report of a study shows."""
SHOWN_JOINED = {
    **{f"table{n}": (f"Table {n}", f"report/table{n}.csv") for n in range(1, 6)},
    "claims": ("Claims", "report/claims.csv"),
    "detectable": ("Detectable differences", "report/detectable.csv"),
    "budget": ("Budgets", "report/budget.csv"),
    "page": ("The report", "report/report.html"),
}
"""The same of a joined study."""


@dataclass(frozen=True)
class Row:
    """A number that stands alone: unrounded, with the place that links of the report lead to.

    `member` is the study that it was computed in, where that is another one, `there` its place on
    that study's page.
    """

    name: str
    value: str
    interval: str
    count: str
    anchor: str
    member: str = ""
    there: str = ""


@dataclass(frozen=True)
class Group:
    """Rows of one method, and the jobs behind them that are of this method alone."""

    name: str
    jobs: Sequence[Record]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Section:
    """What one table or figure shows, and the tree of jobs and files behind it.

    `points` is the file that holds a figure's points, seen from the page.
    """

    anchor: str
    title: str
    groups: Sequence[Group]
    points: str
    tree: Markup


def trace_page(seen: Evidence) -> str:
    """The page: for each table and figure its numbers, then the tree behind it.

    Where a job read a file of another study, the tree ends with a link to that study's page.
    """
    shown = SHOWN_JOINED if isinstance(seen.settings, JoinedStudy) else SHOWN
    folder = f"{RESULTS}/{seen.study}"
    made = producers(seen.records)
    there = {name: each for name, each in shown.items() if f"{folder}/{each[1]}" in made}
    paths = [f"{folder}/{file}" for _, file in there.values()]
    hashes = {path: file.sha256 for path, file in seen.files.items()}
    origins = trace_files(seen.records, seen.root, paths, hashes)
    named: set[str] = set()
    sections = [
        Section(
            place,
            title,
            list(_groups(seen.root / origin.path, origin, named)),
            _points(origin.path),
            Markup(f'<ul class="tree">{_item(origin, seen.study)}</ul>'),
        )
        for (place, (title, _)), origin in zip(there.items(), origins, strict=True)
    ]
    return render("trace.html", study=seen.study, sections=sections, digits=DIGITS)


def _points(path: str) -> str:
    name = PurePosixPath(path)
    return f"../{name.parent.name}/{name.stem}.csv" if name.suffix in PICTURES else ""


def _groups(path: Path, origin: Origin, named: set[str]) -> Iterator[Group]:
    """The numbers of a CSV file that the report links to singly; `named` holds the places taken."""
    if path.suffix != ".csv" or not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {*rows[0]} if rows else set()
    if {"method", "metric", "gain"} <= columns:
        for (place, method), own in groupby(rows, lambda row: (row.get("member"), row["method"])):
            jobs = () if place else tuple(_jobs_of(origin, method))
            yield Group(method, jobs, [_of_a_table(row, named) for row in own])
    elif "statement" in columns and "member" not in columns:
        yield Group("", (), [_of_a_claim(row) for row in rows if row["effect"]])


def _of_a_table(row: Mapping[str, str], named: set[str]) -> Row:
    own = row_anchor(row)
    place = "" if own in named else own
    named.add(own)
    value, low, high = (
        (row["gain"], row["gain_low"], row["gain_high"])
        if row["baseline"]
        else (row["value"], row["ci_low"], row["ci_high"])
    )
    over = f" over {row['baseline']}" if row["baseline"] else ""
    where = ", ".join(filter(None, (row.get("data_set"), row.get("student"))))
    member = row.get("member", "")
    return Row(
        name=f"{where}{': ' * bool(where)}{row['method']}{over}, {row['metric']}",
        value=value,
        interval=_interval(low, high),
        count=f"{row['n_documents']} notes, {row['n_seeds']} seeds",
        anchor=place,
        member=member,
        there=row_anchor({**row, "member": "", "data_set": ""}),
    )


def _of_a_claim(row: Mapping[str, str]) -> Row:
    return Row(
        name=f"{row['id']} {row['statement']}",
        value=row["effect"],
        interval=_interval(row["ci_low"], row["ci_high"]),
        count=f"{row['verdict']}; n {row['n']}; {row['sources']}",
        anchor=anchor("claims", row["id"]),
    )


def _interval(low: str, high: str) -> str:
    return f"[{low}, {high}]" if low and high else ""


def _jobs_of(origin: Origin, method: str) -> list[Record]:
    """The jobs behind a file whose name says that they are of this method."""
    word = re.compile(rf"(?<!\w){re.escape(method)}(?!\w)")
    return sorted((job for job in origin.jobs() if word.search(job.job)), key=lambda job: job.job)


def _item(origin: Origin, study: str) -> str:
    """A file, the job that made it and, where that stands in full, all that it read."""
    job = origin.job
    timed = PurePosixPath(origin.path).name in TIMED
    digest = "holds times" if timed else f"<code>{origin.sha256[:DIGITS]}</code>"
    state = "" if origin.now == "as recorded" else f' <span class="wrong">{origin.now}</span>'
    line = f"<code>{escape(origin.path)}</code> {digest}{state} {_maker(origin, study)}"
    if job is None or origin.again:
        return f"<li>{line}</li>\n"
    told = f"<br><small>{escape(facts(job))}</small>"
    if job.parameters:
        values = ", ".join(f"{key} = {json.dumps(value)}" for key, value in job.parameters.items())
        told += (
            f"<br><details><summary><small>{len(job.parameters)} parameters</small></summary> "
            f"<small>{escape(values)}</small></details>"
        )
    below = "".join(_item(each, study) for each in origin.inputs)
    inner = f"<ul>\n{below}</ul>" if below else ""
    return f'<li id="job-{escape(job.name)}">{line}{told}{inner}</li>\n'


def _maker(origin: Origin, study: str) -> str:
    job = origin.job
    if job is not None:
        name = escape(job.job)
        again = f'<a href="#job-{escape(job.name)}">{name}</a>'
        return f"by {again if origin.again else f'<b>{name}</b>'}"
    parts = PurePosixPath(origin.path).parts
    if parts[0] == RESULTS and parts[1] != study:
        return f'of <a href="../../{escape(parts[1])}/audit/trace.html">{escape(parts[1])}</a>'
    return '<span class="wrong">no record</span>' if parts[0] == RESULTS else "from outside"

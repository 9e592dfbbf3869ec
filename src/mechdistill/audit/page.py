"""The audit as a page: it holds no dates, times or names of machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup

from mechdistill.audit.finding import CODES, Verdict
from mechdistill.audit.record import Record, machine

BY_RUNNING = ("CELL", "FIGURE", "CANNOT-DERIVE", "REPLAY")
"""Codes of what is found only where jobs are run again."""
BY_ROWS = ("CELL", "FIGURE", "CANNOT-DERIVE")


def audit_page(verdict: Verdict, records: Sequence[Record]) -> str:
    """The page of an audit by bytes, records, code and packages.

    Args:
        records: of all jobs that were looked at.
    """
    about = (
        "Made right after the report: every file was hashed and compared with the record of its "
        "job, the notes of Snakemake and the checkout. These pages themselves were left out. "
        "Whether the rows of single examples give every number of the report, numbers.html tells, "
        "which snakemake --cores 2 audit writes."
    )
    codes = [code for code in CODES if code not in BY_RUNNING]
    return _page("Audit", about, verdict, records, codes)


def numbers_page(verdict: Verdict, records: Sequence[Record]) -> str:
    """The page of numbers that were derived once more from the rows of single examples."""
    about = (
        "The rules that read no model ran once more, each on what the rules before it gave this "
        "time, and every cell, line and picture of the report was compared with what came out."
    )
    return _page("Numbers derived once more", about, verdict, records, BY_ROWS)


def render(template: str, **values: object) -> str:
    """A template of this package, with the style of its pages."""
    folder = files("mechdistill.audit").joinpath("templates")
    environment = Environment(
        autoescape=select_autoescape(default=True), undefined=StrictUndefined, trim_blocks=True
    )
    css = Markup(folder.joinpath("style.css").read_text("utf-8"))
    text = folder.joinpath(template).read_text("utf-8")
    return environment.from_string(text).render(css=css, **values)


def _page(
    title: str, about: str, verdict: Verdict, records: Sequence[Record], codes: Sequence[str]
) -> str:
    found = Counter(finding.code for finding in verdict.findings)
    machines = Counter(map(_kind, records))
    return render(
        "audit.html",
        title=title,
        about=about,
        verdict=verdict,
        codes=[(code, CODES[code], found[code]) for code in codes],
        machines=sorted(machines.items()),
    )


def _kind(record: Record) -> str:
    chosen = ", chosen by Slurm" if record.slurm_job_id else ""
    return f"{machine(record)}, Python {record.environment.python}{chosen}"

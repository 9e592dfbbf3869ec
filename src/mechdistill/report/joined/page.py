"""The page of a joined study: one HTML file without dates, times or machine names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import pandas as pd
from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup

from mechdistill.report.formats import plain
from mechdistill.report.joined.budgets import out_of_line_rows
from mechdistill.report.joined.claims import claim_matrix, verdict_counts
from mechdistill.report.joined.findings import Story
from mechdistill.report.joined.places import Place, data_sets
from mechdistill.report.joined.tables import PLANS
from mechdistill.report.links import AUDIT_PAGE, trace_of
from mechdistill.report.metrics import TABLE1, method_name
from mechdistill.report.page.printed import SOURCE, Ours, printed_tables
from mechdistill.report.verdicts import Verdict


@dataclass(frozen=True)
class JoinedPage:
    """What the page is made of.

    Attributes:
        tables: HTML of Tables 1 to 5.
        reports: member -> its own report, relative to the page.
    """

    story: Story
    findings: Sequence[str]
    tables: Sequence[str]
    reports: Mapping[Place, str]


def render(page: JoinedPage) -> str:
    """The page as HTML."""
    templates = files("mechdistill.report.joined").joinpath("templates")
    styles = files("mechdistill.report.page").joinpath("templates", "style.css")
    environment = Environment(
        autoescape=select_autoescape(default=True), undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.from_string(templates.joinpath("joined.html").read_text("utf-8"))
    story = page.story
    names = [place.member for place in story.places]
    return template.render(
        css=Markup(styles.read_text("utf-8")),
        trace=trace_of,
        audit_page=AUDIT_PAGE,
        story=story,
        findings=page.findings,
        members=[(place, page.reports[place]) for place in story.places],
        tables=list(map(Markup, page.tables)),
        printed=printed_tables(lambda number: _below(number, story)),
        printed_source=SOURCE,
        verdicts=[str(verdict) for verdict in Verdict],
        counts=[
            (place.title, story.seeds[place], list(verdict_counts(story.claims, name).values()))
            for place, name in zip(story.places, names)
        ],
        columns=[*(place.title for place in story.places), "all members together"],
        claims=claim_matrix(story.claims, [*names, story.study]),
        metrics=TABLE1,
        detectable=detectable_rows(story.detectable, story.places),
        budgets=out_of_line_rows(story.budgets),
    )


def _below(number: int, story: Story) -> list[Ours]:
    """The members of the data sets that stand in the place of the table's own, in its order."""
    there = data_sets(story.places)
    plan = next(plan for plan in PLANS if plan.number == number)
    return [
        Ours(f"{place.title} (this study, {place.member})", story.measures[place])
        for at in plan.data_sets
        for place in story.places
        if there.index(place.data_set) == at
    ]


def detectable_rows(
    detectable: pd.DataFrame, places: Sequence[Place]
) -> list[tuple[str, str, list[str]]]:
    """Title, baseline and one text a metric of Table 1 for each member that has a baseline."""
    rows = []
    for place in places:
        own = detectable[detectable["member"] == place.member]
        if len(own):
            values = dict(zip(own["metric"], own["detectable"]))
            cells = [plain(values.get(metric.key)) for metric in TABLE1]
            rows.append((place.title, method_name(str(own["baseline"].iloc[0])), cells))
    return rows

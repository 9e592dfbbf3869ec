"""The page: one self-contained HTML file, images and styles inside, nothing fetched.

It holds no dates, times or machine names, so the same study gives the same bytes. Its numbers link
to the pages of the audit, which lie beside it.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup

from mechdistill.report.attention import KINDS
from mechdistill.report.elicitation import elicitation_rows, middle_layer
from mechdistill.report.event_attention import PLACES
from mechdistill.report.evidence import Evidence
from mechdistill.report.figures.attention import EDGES
from mechdistill.report.formats import percent
from mechdistill.report.head_sets import overlaps
from mechdistill.report.links import AUDIT_PAGE, TRACE_PAGE, trace_of
from mechdistill.report.lists import list_rows
from mechdistill.report.metrics import LAST_TABLES, MORE_TABLES, Metric
from mechdistill.report.page import rows as page_rows
from mechdistill.report.page.captions import FIGURES
from mechdistill.report.page.event_attention_rows import event_attention_rows
from mechdistill.report.page.knock_in_rows import knock_in_rows
from mechdistill.report.page.origin import Origin
from mechdistill.report.page.printed import SOURCE as PRINTED
from mechdistill.report.page.printed import Ours, printed_tables
from mechdistill.report.rankings import name
from mechdistill.report.recovery import recovery_rows, trained_weights
from mechdistill.report.tables import build, to_html
from mechdistill.report.worked_example import WorkedExample

FRAMES = {**EDGES, "kept": "#000000", "rejected": "#8C8C8C"}
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pandas", "scipy", "matplotlib")
RECORDS = "provenance/runs"


@dataclass(frozen=True)
class Page:
    """What the page is made of.

    Attributes:
        evidence: the study's tables and design.
        claims: of `judge_all`.
        findings: sentences.
        candidates: how many labels a note lists, in words.
        worked: the note that is read through; None where none may be shown.
        table1: HTML of Table 1.
        measures: tidy table of every measure (see `mechdistill.report.tables`).
        figures: figure number -> PNG file.
        definitions: of the evaluation.
        parameters: all parameters of the study.
        decisions: how many decision events of the teacher were found.
        head_effects, attribution: of `mechdistill.patching.calibration`.
        head_sets: of `mechdistill.report.head_sets.set_shares`.
        knock_in: of `mechdistill.report.knock_in.knock_in_shares`.
        knock_in_pairs: how many notes and pairs it is read on.
        event_attention: of `mechdistill.report.event_attention.attention_shares`.
        elicitation_probe: of `mechdistill.patching.region_probe.probe_regions`.
        elicitation_sets: of `mechdistill.patching.eliciting_heads.eliciting_sets`.
        data_card: Markdown.
        origin: of a teacher that was not trained from scratch.
    """

    evidence: Evidence
    claims: pd.DataFrame
    findings: Sequence[str]
    candidates: str
    worked: WorkedExample | None
    table1: str
    measures: pd.DataFrame
    figures: Mapping[int, Path]
    definitions: Mapping[str, Any]
    parameters: Mapping[str, Any]
    decisions: pd.DataFrame
    head_effects: pd.DataFrame
    attribution: pd.DataFrame
    head_sets: pd.DataFrame
    knock_in: pd.DataFrame
    knock_in_pairs: pd.DataFrame
    event_attention: pd.DataFrame
    elicitation_probe: pd.DataFrame
    elicitation_sets: pd.DataFrame
    data_card: str
    origin: Origin | None


def _origin_of_notes(parameters: Mapping[str, Any]) -> str:
    brought = parameters.get("data", {}).get("source") is not None
    return "the user's own" if brought else "synthetic"


def render(page: Page) -> str:
    """The page as HTML."""
    templates = files("mechdistill.report.page").joinpath("templates")
    environment = Environment(
        autoescape=select_autoescape(default=True), undefined=StrictUndefined, trim_blocks=True
    )
    template = environment.from_string(templates.joinpath("report.html").read_text("utf-8"))
    evidence, design = page.evidence, page.evidence.design
    tables = evidence.tables
    return template.render(
        css=Markup(templates.joinpath("style.css").read_text("utf-8")),
        trace=trace_of,
        audit_page=AUDIT_PAGE,
        trace_page=TRACE_PAGE,
        design=design,
        origin=page.origin,
        worked=page.worked,
        notes=_origin_of_notes(page.parameters),
        kinds=KINDS,
        edges=FRAMES,
        head_name=name,
        shade=_shade,
        share=lambda weight: percent(100 * weight),
        peak=lambda words: max((word.weight for word in words), default=0.0),
        total=lambda words: sum(word.weight for word in words),
        findings=page.findings,
        candidates=page.candidates,
        list_rows=list_rows(tables.get("lists"), design.pool_size),
        tables=[Markup(page.table1), *map(Markup, _measure_tables(page.measures, MORE_TABLES))],
        last_tables=list(map(Markup, _measure_tables(page.measures, LAST_TABLES))),
        printed=printed_tables(lambda _: [Ours(f"this study ({design.study})", page.measures)]),
        printed_source=PRINTED,
        patching_size_text=f"about the size of a pool ({design.pool_size} heads)",
        ranking_names=list(page_rows.RANKINGS.values()),
        patching_rows=page_rows.patching_rows(tables["patching_summary"], design.pool_size),
        agreement_rows=page_rows.agreement_rows(tables["causal_agreement"]),
        figures=[_figure(number, path) for number, path in sorted(page.figures.items())],
        claims_line=page.findings[-1],
        claims=page_rows.claim_rows(page.claims),
        records=f"{RECORDS}/{design.study}/",
        manipulation=page_rows.manipulation_rows(tables["manipulation"], design.bootstrap),
        decisions=page_rows.decision_rows(page.decisions),
        head_rows=page_rows.head_effect_rows(page.head_effects, page.attribution),
        set_rows=page_rows.set_rows(page.head_sets),
        knock_in_rows=knock_in_rows(page.knock_in, page.knock_in_pairs),
        places=list(PLACES.values()),
        event_attention_rows=event_attention_rows(page.event_attention),
        elicitation_rows=elicitation_rows(
            page.elicitation_probe, page.elicitation_sets, design.layers
        ),
        middle_layer=middle_layer(design.layers),
        recovery_rows=recovery_rows(tables.get("recovery"), design.pool_size),
        student_weights=trained_weights(evidence.budgets),
        overlaps=[*map(page_rows.overlap_row, overlaps(page.head_effects))],
        false_discovery=percent(100 * page.parameters["patching"]["false_discovery"]),
        statuses=page_rows.status_rows(tables["predictions"]),
        budgets=page_rows.budget_rows(evidence.budgets),
        definitions=[
            *page_rows.definition_lines(page.definitions),
            page_rows.undefined_line(page.measures),
            *page_rows.tokenizer_lines(page.parameters["distil"]),
        ],
        environment=environment_line(),
        parameters=json.dumps(page.parameters, indent=2, ensure_ascii=False),
        data_card=page.data_card,
    )


def environment_line() -> str:
    """Python and the versions that numbers can depend on."""
    found = [f"{package} {importlib.metadata.version(package)}" for package in PACKAGES]
    return f"Python {platform.python_version()}; {', '.join(found)}."


def _measure_tables(
    measures: pd.DataFrame, tables: Sequence[tuple[Sequence[Metric], str]]
) -> list[str]:
    shown = []
    for metrics, title in tables:
        own = measures[measures["metric"].isin([metric.key for metric in metrics])]
        if own["value"].notna().any():
            shown.append(to_html(build(own, metrics, title)))
    return shown


def _figure(number: int, path: Path) -> dict[str, Any]:
    encoded = base64.b64encode(path.read_bytes()).decode("ascii")
    title, text = FIGURES[number]
    uri = f"data:image/png;base64,{encoded}"
    return {"number": number, "title": title, "text": text, "uri": Markup(uri)}


def _shade(weight: float, most: float) -> str:
    """Opacity of a word's background: its attention as a share of the text's largest."""
    return f"{weight / most if most > 0 else 0:.3f}"

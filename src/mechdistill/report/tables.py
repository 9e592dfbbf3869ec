"""Table 1: its tidy form (CSV), and its wide form for LaTeX and HTML.

Marks compare mech with the best baseline, chosen on the validation notes; gains compare it with
each baseline. Both stand in the caption, so that no reader has to guess the reference.
"""

from __future__ import annotations

import html
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from mechdistill.report.formats import MISSING, interval, plain, signed
from mechdistill.report.links import row_anchor, trace_of
from mechdistill.report.metrics import BY_KEY, Metric, in_paper_order, method_name
from mechdistill.significance.plan import (
    ABLATIONS,
    PAPER_BASELINES,
    PROPOSED,
    SUCCESSOR,
    TEACHER,
    baselines,
)

TITLE = "Table 1. Reasoning, downstream performance and mechanism of teacher and students."
COLUMNS = (
    *("method", "metric", "better", "value", "ci_low", "ci_high", "n_documents", "n_seeds"),
    "n_undefined",
    *("baseline", "is_mark_reference", "gain", "gain_low", "gain_high"),
    *("p_wilcoxon", "p_holm", "mark", "degenerate_output"),
)
AVERAGE = "average gain"
Tone = Literal["", "good", "bad"]


@dataclass(frozen=True)
class Cell:
    """A number, its interval below it, and a mark: "▲" or "▼" by sign, good or bad by direction.

    `left_out` counts the pairs of note and seed that have no such score; `anchor` is the number's
    place on the trace page, for HTML.
    """

    text: str = MISSING
    below: str = ""
    mark: str = ""
    tone: Tone = ""
    left_out: int = 0
    anchor: str = ""

    @property
    def note(self) -> str:
        """What stands below the interval."""
        return f"{self.left_out} left out" if self.left_out else ""


@dataclass(frozen=True)
class Line:
    """A row: a method's values, mech's gains over one baseline, or a heading over rows below."""

    name: str
    kind: Literal["value", "proposed", "gain", "teacher", "group"]
    cells: tuple[Cell, ...]
    degenerate: str = ""

    @property
    def note(self) -> str:
        """What stands below the name."""
        return f"degenerate: {self.degenerate}" if self.degenerate else ""


@dataclass(frozen=True)
class Table:
    """What LaTeX and HTML show."""

    caption: str
    metrics: tuple[Metric, ...]
    lines: tuple[Line, ...]


def tidy(
    values: pd.DataFrame, comparisons: pd.DataFrame, degenerate: Mapping[str, str]
) -> pd.DataFrame:
    """Values and gains as rows: a value row has no baseline, a gain row has no value.

    Args:
        values: of `mechdistill.report.values.method_values`.
        comparisons: of the significance stage; the rows of mech against baselines are kept.
        degenerate: of `mechdistill.evaluate.degenerate.degenerate_methods`.
    """
    own = values.assign(
        baseline="",
        is_mark_reference=False,
        mark="",
        degenerate_output=[degenerate.get(method, "") for method in values["method"]],
    )
    truly = baselines([m for m in values["method"].unique() if m != TEACHER])
    gains = comparisons[
        (comparisons["method"] == PROPOSED) & comparisons["baseline"].isin(truly)
    ].rename(
        columns={
            "difference": "gain",
            "ci_low": "gain_low",
            "ci_high": "gain_high",
            "is_best_baseline": "is_mark_reference",
        }
    )
    both = pd.concat([own, gains], ignore_index=True)
    both["degenerate_output"] = both["degenerate_output"].fillna("")
    both["better"] = [BY_KEY[m].better if m in BY_KEY else None for m in both["metric"]]
    return both.reindex(columns=list(COLUMNS))


def build(frame: pd.DataFrame, metrics: Sequence[Metric], title: str) -> Table:
    """The wide table of some metrics from the tidy one."""
    methods = in_paper_order(dict.fromkeys(frame.loc[frame["value"].notna(), "method"]))
    rivals = [m for m in baselines(methods) if m != TEACHER]
    order = [*rivals, *(m for m in (*ABLATIONS, SUCCESSOR) if m in methods)]
    reference = mark_reference(frame)
    valued = frame[frame["value"].notna()]
    wrong = dict(zip(valued["method"], valued["degenerate_output"], strict=True))
    lines = [Line(method_name(m), "value", value_cells(frame, m, metrics), wrong[m]) for m in order]
    if PROPOSED in methods:
        cells = value_cells(frame, PROPOSED, metrics, reference)
        lines.append(Line(method_name(PROPOSED), "proposed", cells, wrong[PROPOSED]))
        lines += [
            Line(f"gain over {method_name(b)}", "gain", _gains(frame, b, metrics)) for b in rivals
        ]
        averaged = [b for b in PAPER_BASELINES if b in rivals]
        if len(averaged) > 1:
            lines.append(Line(AVERAGE, "gain", _average_gains(frame, averaged, metrics)))
    if TEACHER in methods:
        cells = value_cells(frame, TEACHER, metrics)
        lines.append(Line(method_name(TEACHER), "teacher", cells, wrong[TEACHER]))
    return Table(_caption(frame, title, reference, metrics), tuple(metrics), tuple(lines))


def to_csv(frame: pd.DataFrame) -> str:
    """The tidy table as CSV, numbers unrounded."""
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def to_metrics(frame: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """The tidy table's values by method and metric, as `dvc metrics diff` compares them.

    Beside each value its interval, where it has one; gains are left out.
    """
    numbers: dict[str, dict[str, dict[str, float]]] = {}
    for row in frame[frame["value"].notna()].itertuples():
        given = {name: float(getattr(row, name)) for name in ("value", "ci_low", "ci_high")}
        known = {name: number for name, number in given.items() if math.isfinite(number)}
        numbers.setdefault(str(row.method), {})[str(row.metric)] = known
    return numbers


def from_csv(text: str) -> pd.DataFrame:
    """The tidy table that `to_csv` wrote."""
    frame: pd.DataFrame = pd.read_csv(io.StringIO(text))
    return frame.fillna({"baseline": "", "mark": "", "degenerate_output": ""})


def to_html(table: Table) -> str:
    """One `<table>` element, without styles of its own."""
    head = "".join(
        f'<th scope="col" title="{html.escape(m.long)}">{html.escape(m.short)}&nbsp;{m.arrow}</th>'
        for m in table.metrics
    )
    rows = "\n".join(_html_line(line, len(table.metrics)) for line in table.lines)
    return (
        f'<table class="results">\n<caption>{html.escape(table.caption)}</caption>\n'
        f'<thead><tr><th scope="col">Method</th>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n'
        "</table>\n"
    )


def to_latex(table: Table) -> str:
    """A `table*` environment for booktabs; the marks need amssymb."""
    head = " & ".join(f"{_tex(m.short)}${_TEX_ARROW[m.better]}$" for m in table.metrics)
    body = "\n".join(_tex_line(line, len(table.metrics)) for line in table.lines)
    return (
        "% needs \\usepackage{booktabs,amssymb}\n"
        "\\begin{table*}\n\\centering\\small\n"
        f"\\caption{{{_tex(table.caption)}}}\n"
        f"\\begin{{tabular}}{{l{'c' * len(table.metrics)}}}\n\\toprule\n"
        f"Method & {head} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
        "\\end{table*}\n"
    )


def value_cells(
    frame: pd.DataFrame,
    method: str,
    metrics: Sequence[Metric],
    reference: str = "",
    member: str = "",
) -> tuple[Cell, ...]:
    """A method's values, marked by its gain over the baseline `reference` where one is named.

    `member` is the study of a joined one that the values are of.
    """
    rows = _by_metric(frame[(frame["method"] == method) & frame["value"].notna()])
    cells = []
    for metric in metrics:
        row = rows.get(metric.key)
        if row is None:
            cells.append(Cell())
            continue
        mark, tone = _mark(frame, metric, reference) if reference else ("", "")
        ends = interval(row["ci_low"], row["ci_high"])
        place = row_anchor({"member": member, "method": method, "metric": metric.key})
        left_out = int(row["n_undefined"])
        cells.append(Cell(plain(row["value"]), ends, mark, tone, left_out, place))
    return tuple(cells)


def _gains(frame: pd.DataFrame, baseline: str, metrics: Sequence[Metric]) -> tuple[Cell, ...]:
    rows = _by_metric(frame[(frame["baseline"] == baseline) & frame["gain"].notna()])
    cells = []
    for metric in metrics:
        row = rows.get(metric.key)
        if row is None:
            cells.append(Cell())
            continue
        mark, tone = _mark(frame, metric, baseline)
        ends = interval(row["gain_low"], row["gain_high"])
        cells.append(Cell(signed(row["gain"]), ends, mark, tone, anchor=row_anchor(row)))
    return tuple(cells)


def _average_gains(
    frame: pd.DataFrame, rivals: Sequence[str], metrics: Sequence[Metric]
) -> tuple[Cell, ...]:
    """Mean over baselines of mech's gain, where each of them has one; without an interval."""
    gains = [_by_metric(frame[(frame["baseline"] == b) & frame["gain"].notna()]) for b in rivals]
    return tuple(
        Cell(signed(sum(of[metric.key]["gain"] for of in gains) / len(gains)))
        if all(metric.key in of for of in gains)
        else Cell()
        for metric in metrics
    )


def _by_metric(rows: pd.DataFrame) -> dict[str, dict[str, Any]]:
    records: list[dict[str, Any]] = rows.to_dict("records")  # type: ignore[assignment]
    return {record["metric"]: record for record in records}


def _mark(frame: pd.DataFrame, metric: Metric, baseline: str) -> tuple[str, Tone]:
    rows = frame[(frame["baseline"] == baseline) & (frame["metric"] == metric.key)]
    return shown_mark(str(rows["mark"].iloc[0]) if len(rows) else "", metric)


def shown_mark(mark: str, metric: Metric) -> tuple[str, Tone]:
    """Sign and tone of "up" or "down"; both empty for anything else."""
    if mark not in ("up", "down"):
        return "", ""
    good = (mark == "up") == (metric.better > 0)
    return ("▲" if mark == "up" else "▼"), ("good" if good else "bad")


def mark_reference(frame: pd.DataFrame) -> str:
    """The baseline that marks compare with, chosen on the validation notes; "" without one."""
    chosen = frame.loc[frame["is_mark_reference"].fillna(False).astype(bool), "baseline"]
    return str(chosen.iloc[0]) if len(chosen) else ""


def _caption(frame: pd.DataFrame, title: str, reference: str, metrics: Sequence[Metric]) -> str:
    values = frame[frame["value"].notna()]
    notes = int(values["n_documents"].max()) if len(values) else 0
    seeds = int(values["n_seeds"].max()) if len(values) else 0
    parts = [
        f"{title} Mean over {notes} test notes and {seeds} training seeds (the teacher has one); "
        "in brackets the 95 % interval, notes and seeds resampled."
    ]
    if reference:
        parts.append(
            "▲ and ▼ in the mech line: higher or lower than the best baseline on the validation "
            f"notes ({method_name(reference)}), bootstrap interval without 0 and, where a single "
            "note has a value, Wilcoxon p < 0.05; in the gain lines the same against the baseline "
            "named."
        )
    if (values.loc[values["metric"].isin([m.key for m in metrics]), "n_undefined"] > 0).any():
        parts.append(
            "“left out”: pairs of note and seed in which the score is undefined. Confusion, Loop "
            "and Help are read at refinement positions, those of clauses that decide a gold label: "
            "reasoning that comes to none has no value."
        )
    if (values["degenerate_output"] != "").any():
        parts.append(
            "“degenerate”: a model that answers nearly every note with no code, with every code "
            "it is offered, or with the same codes; its scores say nothing about reasoning."
        )
    gained = set(frame.loc[frame["gain"].notna(), "baseline"])
    averaged = [b for b in PAPER_BASELINES if b in gained]
    if len(averaged) > 1:
        listed = ", ".join(map(method_name, averaged))
        parts.append(f"{AVERAGE.capitalize()}: mech minus the mean of {listed}, as in the paper.")
    absent = [m.short for m in metrics if m.key not in set(values["metric"])]
    if absent:
        parts.append(f"Not measured in this study: {', '.join(absent)}.")
    return " ".join(parts)


def _html_line(line: Line, columns: int) -> str:
    if line.kind == "group":
        name = f'<th scope="rowgroup" colspan="{columns + 1}">{_html_name(line)}</th>'
    else:
        name = f'<th scope="row">{_html_name(line)}</th>'
    return f'<tr class="{line.kind}">{name}{"".join(map(_html_cell, line.cells))}</tr>'


def _html_name(line: Line) -> str:
    note = f"<br><small>{html.escape(line.note)}</small>" if line.note else ""
    return f"{html.escape(line.name)}{note}"


def _html_cell(cell: Cell) -> str:
    mark = f'<span class="mark {cell.tone}">{cell.mark}</span>' if cell.mark else ""
    lines = (html.escape(text) for text in (cell.below, cell.note) if text)
    below = "".join(f"<small>{line}</small>" for line in lines)
    text = html.escape(cell.text).replace("-", "−")
    if cell.anchor:
        text = f'<a href="{html.escape(trace_of(cell.anchor))}">{text}</a>'
    return f"<td>{text}{mark}{below.replace('-', '−')}</td>"


def _tex_line(line: Line, columns: int) -> str:
    if line.kind == "group":
        name = f"\\emph{{{_tex(line.name)}}}"
        return f"\\addlinespace\n\\multicolumn{{{columns + 1}}}{{l}}{{{name}}} \\\\"
    numbers = " & ".join(_tex_cell(cell) for cell in line.cells)
    intervals = " & ".join(
        f"{{\\scriptsize ${cell.below}$ {cell.note}}}" if cell.below else "" for cell in line.cells
    )
    rule = "\\midrule\n" if line.kind in ("proposed", "teacher") else ""
    note = f"{{\\scriptsize {_tex(line.note)}}}" if line.note else ""
    return f"{rule}{_tex(line.name)} & {numbers} \\\\\n{note} & {intervals} \\\\"


def _tex_cell(cell: Cell) -> str:
    if cell.text == MISSING:
        return "--"
    mark = {"▲": "\\blacktriangle", "▼": "\\blacktriangledown", "": ""}[cell.mark]
    return f"${cell.text}{mark}$"


_TEX_ARROW = {1: "\\uparrow", -1: "\\downarrow"}


def _tex(text: str) -> str:
    """Text safe in LaTeX."""
    for raw, safe in (
        ("\\", "\\textbackslash{}"),
        ("%", "\\%"),
        ("&", "\\&"),
        ("_", "\\_"),
        ("#", "\\#"),
        ("▲", "$\\blacktriangle$"),
        ("▼", "$\\blacktriangledown$"),
        ("–", "--"),
        ("<", "$<$"),
    ):
        text = text.replace(raw, safe)
    return text

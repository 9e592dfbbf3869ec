"""The paper's Tables 1 to 4 as they are printed, with this study's values below them.

The numbers of printed_tables.csv are those of “Characterize Then Distill: Mechanistic Reasoning in
Large Output Spaces”, arXiv 2606.06840, version 1, copied from its tables: value, arrow and printed
gain of every cell. They come from other data, other models and another scale; they are shown beside
ours for reading, and nothing is computed from the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pandas as pd

from mechdistill.report.formats import MISSING, plain, signed
from mechdistill.report.metrics import BY_KEY, Metric
from mechdistill.significance.plan import PAPER_BASELINES, PLAIN, PROPOSED, TEACHER

SOURCE = "“Characterize Then Distill”, arXiv 2606.06840, version 1"
METRICS = {
    "focus": "focus",
    "confusion": "confusion",
    "las": "las",
    "macro_f1": "macro_f1_gold_present",
    "sharpness": "sharp",
    "anchor_align": "align",
    "qk_loopback": "loop",
    "ov_helpfulness": "help",
}
"""Column of the paper -> our metric."""
METHODS = {
    "Vanilla": PLAIN,
    "UniCoTT": "unicott",
    "MoRSD": "morsd",
    "SemCoT": "semcot",
    "CWT": "cwt",
    "Mech": PROPOSED,
    "Teacher": TEACHER,
}
"""Row of the paper -> our method."""
AVERAGE = "avg_gain"
REFERENCES = {
    1: "printed gains of Mech are over CWT, the average gain over the mean of all five baselines, "
    "both students averaged",
}
OTHER_REFERENCE = "printed gains of Mech are over Vanilla, the average gain is their mean"

Row = tuple[str, tuple[str, ...]]
"""Name of a line and its cells."""


@dataclass(frozen=True)
class Block:
    """Lines of one data set and model."""

    title: str
    rows: tuple[Row, ...]
    ours: bool


@dataclass(frozen=True)
class Ours:
    """What stands below a printed table: a title, and the tidy table of every measure."""

    title: str
    measures: pd.DataFrame


@dataclass(frozen=True)
class PrintedTable:
    """One table of the paper, its last blocks from this study."""

    caption: str
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]


def printed_numbers() -> pd.DataFrame:
    """The copied cells, one row each, all but the table's number as text."""
    path = files("mechdistill.report.page").joinpath("printed_tables.csv")
    with path.open(encoding="utf-8") as file:
        frame: pd.DataFrame = pd.read_csv(file, dtype=str, keep_default_na=False)
    return frame.astype({"table": "int64"})


def printed_tables(ours: Callable[[int], Sequence[Ours]]) -> list[PrintedTable]:
    """The four tables in the paper's order of rows and columns.

    Args:
        ours: what stands below the table of a number.
    """
    printed = printed_numbers()
    return [
        _table(number, rows, ours(number))
        for number, rows in ((int(str(n)), own) for n, own in printed.groupby("table", sort=True))
    ]


def _table(number: int, cells: pd.DataFrame, below: Sequence[Ours]) -> PrintedTable:
    columns = list(dict.fromkeys(cells["metric"]))
    metrics = [BY_KEY[METRICS[column]] for column in columns]
    blocks = [
        Block(f"{dataset}, {_model(model)}", _printed_rows(rows, columns), ours=False)
        for (dataset, model), rows in cells.groupby(["dataset", "model"], sort=False)
    ]
    order = list(dict.fromkeys(METHODS[m] for m in cells["method"] if m != AVERAGE))
    rivals = [method for method in order if method in PAPER_BASELINES]
    ours = [
        Block(own.title, _our_rows(own.measures, order, rivals, metrics), ours=True)
        for own in below
    ]
    return PrintedTable(
        caption=f"Printed Table {number}: {REFERENCES.get(number, OTHER_REFERENCE)}.",
        columns=tuple(f"{metric.short}\N{NO-BREAK SPACE}{metric.arrow}" for metric in metrics),
        blocks=(*blocks, *ours),
    )


def _model(name: object) -> str:
    return "average over students" if name == "avg_over_students" else str(name)


def _printed_rows(rows: pd.DataFrame, columns: Sequence[str]) -> tuple[Row, ...]:
    found = []
    for method, own in rows.groupby("method", sort=False):
        by_metric = own.set_index("metric").to_dict("index")
        name = "average gain" if method == AVERAGE else str(method)
        found.append((name, tuple(_as_printed(by_metric[column]) for column in columns)))
    return tuple(found)


def _as_printed(cell: Mapping[Any, Any]) -> str:
    """`0.62 ▲ +0.09`, as far as it is printed."""
    marker = "" if cell["marker"] == "none" else cell["marker"]
    return " ".join(filter(None, (cell["value"], marker, cell["gain_printed"]))) or MISSING


def _our_rows(
    measures: pd.DataFrame, order: Sequence[str], rivals: Sequence[str], metrics: Sequence[Metric]
) -> tuple[Row, ...]:
    names = {ours: theirs for theirs, ours in METHODS.items()}
    valued = measures[measures["value"].notna()]
    values = {(m, k): v for m, k, v in zip(valued["method"], valued["metric"], valued["value"])}
    gained = measures[(measures["method"] == PROPOSED) & measures["gain"].notna()]
    gains = {(b, k): g for b, k, g in zip(gained["baseline"], gained["metric"], gained["gain"])}
    trained = [rival for rival in rivals if any(own == rival for own, _ in gains)]
    rows: list[Row] = []
    for method in order:
        if method == TEACHER and trained:
            over = ", ".join(names[rival] for rival in trained)
            means = (_mean(gains, trained, metric.key) for metric in metrics)
            rows.append((f"Mech over the mean of {over}", tuple(map(signed, means))))
        cells = tuple(plain(values.get((method, metric.key))) for metric in metrics)
        rows.append((names[method], cells))
    return tuple(rows)


def _mean(
    gains: Mapping[tuple[str, str], float], rivals: Sequence[str], metric: str
) -> float | None:
    if not all((rival, metric) in gains for rival in rivals):
        return None
    return sum(gains[rival, metric] for rival in rivals) / len(rivals)

"""Two versions of one file, cell by cell: which cells differ, and how.

Numbers of CSV and Parquet are unrounded and compared to nine figures: a machine's last bits may be
others. Pages and LaTeX hold rounded numbers, compared as they are printed.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mechdistill.artifacts import plain

PRECISION = 1e-9
NOTHING = "nothing"
Cells = Mapping[str, Any]
"""Name of a cell (`mech, focus: value`) -> what it says."""


def differing_cells(stored: Path, derived: Path) -> list[tuple[str, str, str]]:
    """Name, stored value and derived value of every cell that differs; text for people.

    A file of a kind without cells (a picture) that differs is one difference without a name.
    """
    try:
        one = cells_of(stored)
    except (ValueError, OSError) as error:  # damaged: the bytes say so as well
        return [("", f"what cannot be read ({str(error).splitlines()[0]})", "a whole file")]
    other = cells_of(derived)
    if one is None or other is None:
        same = stored.read_bytes() == derived.read_bytes()
        return [] if same else [("", "another picture", "this one")]
    return [
        (name, _shown(one.get(name, NOTHING)), _shown(other.get(name, NOTHING)))
        for name in dict.fromkeys([*one, *other])
        if not _same(one.get(name), other.get(name))
    ]


def cells_of(path: Path) -> Cells | None:
    """The cells of a file; None of a kind that has none (a picture).

    Raises:
        ValueError, OSError: the file is damaged.
    """
    read = _READERS.get(path.suffix)
    return None if read is None else read(path)


def csv_cells(path: Path) -> Cells:
    """The cells of a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return _named([{str(key): _number(value) for key, value in row.items()} for row in rows])


def parquet_cells(path: Path) -> Cells:
    """The cells of a Parquet table."""
    import pyarrow.parquet as pq

    rows = pq.read_table(path).to_pylist()
    return _named([{key: plain(value) for key, value in row.items()} for row in rows])


def page_cells(path: Path) -> Cells:
    """The cells of all tables of a page, by table, row and column; its other text by place."""
    reader = _Page()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.cells


def latex_cells(path: Path) -> Cells:
    """The cells of a LaTeX table, by line and column."""
    cells = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        row, *rest = line.split(" & ")
        for column, text in enumerate([row, *rest]):
            cells[f"line {number}, {row.strip()[:40]}, column {column}"] = text
    return cells


def lines(path: Path) -> Cells:
    """The lines of a text."""
    text = path.read_text(encoding="utf-8").splitlines()
    return {f"line {number}": line for number, line in enumerate(text, start=1)}


def _named(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Cells named after what their row is about: its texts, and numbers such as a seed or layer."""
    cells: dict[str, Any] = {}
    seen: dict[str, int] = {}
    for row in rows:
        about = [text for key, value in row.items() if (text := _about(key, value))]
        name = ", ".join(text for text in about if len(text) <= 40)[:100]
        seen[name] = seen.get(name, 0) + 1
        again = f" ({seen[name]})" if seen[name] > 1 else ""
        cells |= {f"{name}{again}: {key}": value for key, value in row.items()}
    return cells


def _about(column: str, value: Any) -> str:
    if isinstance(value, str):
        return "" if value in ("True", "False") else value
    whole = isinstance(value, int) and not isinstance(value, bool)
    return f"{column} {value}" if whole and not column.startswith("n_") else ""


class _Page(HTMLParser):
    """Collects the text of each table cell under its table, row and column, other text by number.

    Pictures that a page holds as data are left to the files that they were made from.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cells: dict[str, str] = {}
        self._table = self._row = self._column = self._texts = 0
        self._heads: list[str] = []
        self._name = ""
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table":
            self._table, self._row, self._heads = self._table + 1, 0, []
        elif tag == "tr":
            self._row, self._column, self._name = self._row + 1, 0, ""
        elif tag in ("td", "th"):
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("td", "th") or self._text is None:
            return
        text = re.sub(r"\s+", " ", " ".join(self._text)).strip()
        if self._row == 1:
            self._heads.append(text)
        if self._column == 0:
            self._name = text
        heads = self._heads
        head = heads[self._column] if self._column < len(heads) else str(self._column)
        place = f"table {self._table}, row {self._row} ({self._name[:40]}), {head}"
        self.cells[place] = text
        self._column, self._text = self._column + 1, None

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)
        elif data.strip():
            self._texts += 1
            self.cells[f"text {self._texts}"] = data.strip()


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        both_undefined = math.isnan(one) and math.isnan(other)
        return both_undefined or math.isclose(one, other, rel_tol=PRECISION, abs_tol=1e-12)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return all(_same(a, b) for a, b in zip_longest(one, other))
    return bool(one == other)


def _number(text: str | None) -> Any:
    if text is None or not re.fullmatch(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?|nan", text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


_READERS: dict[str, Callable[[Path], Cells]] = {
    ".csv": csv_cells,
    ".parquet": parquet_cells,
    ".html": page_cells,
    ".tex": latex_cells,
    ".txt": lines,
}

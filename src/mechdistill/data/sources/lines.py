"""Files of the Extreme Classification Repository line by line, each checked.

Sparse matrices (`trn_X_Y.txt`), the older single file (`train.txt`), raw text (`trn.json.gz`),
names of labels and features (`Yf.txt`), pairs to leave out (`filter_labels_test.txt`).
"""

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from mechdistill.data.sources.found import DAMAGE, damaged, shown
from mechdistill.errors import InputError

_ENTRY = re.compile(r"(\d+):([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_AS_PUBLISHED = "take the file as it was published"
Entry = tuple[int, float]


@dataclass(frozen=True)
class Point:
    """A row of the single file: its labels and its features with their values."""

    labels: tuple[int, ...]
    features: tuple[Entry, ...]


@dataclass(frozen=True)
class Text:
    """A row of raw text; `labels` are line numbers of the label file, from 0."""

    title: str
    content: str
    labels: tuple[int, ...]


@dataclass
class SparseFile:
    """A sparse matrix; iterating gives the entries of each row, missing last rows as empty ones.

    `shape` is the header's once the iteration has begun.
    """

    path: Path
    shape: tuple[int, int] = (0, 0)
    warnings: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[Entry, ...]]:
        """Entries (column, value) of each row.

        Raises:
            InputError: the header is wrong, there are more rows than it says, a column is out of
                range or given twice, or an entry is no `index:value`.
        """
        lines = _lines(self.path)
        self.shape = rows, columns = cast(
            tuple[int, int], _header(self.path, next(lines, None), ("rows", "columns"))
        )
        row = 0
        for row, line in enumerate(lines, start=1):
            if row > rows:
                raise InputError(
                    f"{self.path}, row {row}: the header says {rows} rows, and there are more",
                    f"mend the header, or {_AS_PUBLISHED}",
                )
            yield _entries(line.split(), columns, f"{self.path}, row {row}")
        if row < rows:
            self.warnings.append(
                f"{self.path}: the header says {rows} rows, the file has {row}; the last "
                f"{rows - row} count as empty"
            )
        for _ in range(rows - row):
            yield ()


@dataclass
class SingleFile:
    """Labels and features in one file; `shape` is (points, features, labels) of the header."""

    path: Path
    shape: tuple[int, int, int] = (0, 0, 0)

    def __iter__(self) -> Iterator[Point]:
        """Each row; one without labels begins with a space.

        Raises:
            InputError: as of `SparseFile`, or the number of rows is not the header's.
        """
        lines = _lines(self.path)
        header = _header(self.path, next(lines, None), ("points", "features", "labels"))
        self.shape = points, features, labels = cast(tuple[int, int, int], header)
        row = 0
        for row, line in enumerate(lines, start=1):
            where = f"{self.path}, row {row}"
            listed, _, rest = line.partition(" ")
            numbers = [_index(part, labels, where) for part in listed.split(",") if listed]
            yield Point(tuple(dict.fromkeys(numbers)), _entries(rest.split(), features, where))
        if row != points:
            raise InputError(
                f"{self.path}: the header says {points} points, the file has {row}",
                f"mend the header, or {_AS_PUBLISHED}",
            )


def read_texts(path: Path, labels: int) -> Iterator[Text]:
    """Rows of raw text with their labels.

    Raises:
        InputError: a line is no JSON, lacks a key, or names a label outside 0 .. labels - 1.
    """
    for row, line in enumerate(_lines(path), start=1):
        where = f"{path}, row {row}"
        content = _object(line, where, ("uid", "title", "content", "target_ind", "target_rel"))
        numbers, relevance = content["target_ind"], content["target_rel"]
        if not isinstance(numbers, list) or not isinstance(relevance, list):
            raise InputError(f"{where}: target_ind and target_rel must be lists", _AS_PUBLISHED)
        if len(numbers) != len(relevance):
            raise InputError(
                f"{where}: target_rel has {len(relevance)} values, target_ind has {len(numbers)}",
                _AS_PUBLISHED,
            )
        known = [_index(str(number), labels, f"{where}, target_ind") for number in numbers]
        yield Text(str(content["title"]), str(content["content"]), tuple(known))


def read_label_texts(path: Path) -> Iterator[str]:
    """Titles of the labels; a label's number is its line's, from 0, and not its uid."""
    for row, line in enumerate(_lines(path), start=1):
        yield str(_object(line, f"{path}, row {row}", ("uid", "title"))["title"])


def read_names(path: Path, warnings: list[str]) -> Iterator[str]:
    """Names of labels or features, one a line; of `id->title` the title.

    Lines that are no UTF-8 are read as Latin-1, with one warning.
    """
    warned = False
    for row, line in enumerate(_raw_lines(path), start=1):
        try:
            name = line.decode("utf-8")
        except UnicodeDecodeError:
            name = line.decode("latin-1")
            if not warned:
                warnings.append(f"{path}, row {row}: no UTF-8; read as Latin-1")
                warned = True
        yield name.rpartition("->")[2]


def read_pairs(path: Path, labels: int) -> Iterator[tuple[int, int]]:
    """(document, label) pairs that count neither as true nor as false; the file may be empty.

    Raises:
        InputError: a line is no pair of numbers, or a label is out of range.
    """
    for row, line in enumerate(_lines(path), start=1):
        where, parts = f"{path}, row {row}", line.split()
        if len(parts) != 2 or not parts[0].isdecimal():
            raise InputError(
                f"{where}: found {len(parts)} parts, expected the numbers of a document and a "
                "label",
                _AS_PUBLISHED,
            )
        yield int(parts[0]), _index(parts[1], labels, f"{where}, label")


def _entries(parts: list[str], columns: int, where: str) -> tuple[Entry, ...]:
    entries = []
    for part in parts:
        match = _ENTRY.fullmatch(part)
        if match is None:
            raise InputError(f"{where}: found {shown(part)}, expected index:value", _AS_PUBLISHED)
        entries.append((_index(match[1], columns, where), float(match[2])))
    if len({index for index, _ in entries}) < len(entries):
        raise InputError(f"{where}: an index stands there twice", _AS_PUBLISHED)
    return tuple(entries)


def _index(text: str, limit: int, where: str) -> int:
    if not text.isdecimal() or int(text) >= limit:
        raise InputError(
            f"{where}: found {shown(text)}, expected a whole number from 0 to {limit - 1}",
            "numbers count from 0; take all files of one release as they were published",
        )
    return int(text)


def _header(path: Path, line: str | None, names: tuple[str, ...]) -> tuple[int, ...]:
    parts = (line or "").split()
    if len(parts) != len(names) or not all(part.isdecimal() for part in parts):
        raise InputError(
            f"{path}, first line: found {len(parts)} parts, expected the numbers of "
            f"{', '.join(names)}",
            f"give the file its header back, or {_AS_PUBLISHED}",
        )
    return tuple(map(int, parts))


def _object(line: str, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        raise InputError(
            f"{where}: this is no JSON", f"one object a line: {_AS_PUBLISHED}"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"{where}: found no object", f"one object a line: {_AS_PUBLISHED}")
    missing = [key for key in keys if key not in content]
    if missing:
        raise InputError(f"{where}: key {', '.join(missing)} is missing", _AS_PUBLISHED)
    return content


def _lines(path: Path) -> Iterator[str]:
    """Lines as UTF-8, without their ends and without a byte order mark."""
    for row, line in enumerate(_raw_lines(path)):
        try:
            text = line.decode("utf-8-sig" if row == 0 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{path}, line {row + 1}: byte 0x{line[error.start]:02x} is no UTF-8",
                f"convert it to UTF-8, or {_AS_PUBLISHED}",
            ) from None
        yield text


def _raw_lines(path: Path) -> Iterator[bytes]:
    row = 0
    with _opened(path) as (file, raw):
        try:
            for line in file:
                yield line.rstrip(b"\r\n")
                row += 1
        except DAMAGE as error:
            raise damaged(path, f"line {row}", raw.tell()) from error


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The bytes of a file, unpacked if its name ends in .gz, and the file itself."""
    with path.open("rb") as raw:
        if path.suffix != ".gz":
            yield raw, raw
            return
        with gzip.open(raw) as unpacked:
            yield cast(BinaryIO, unpacked), raw

"""Comma-separated tables, plain or gzipped, read row by row with every value checked.

Memory holds one row. Nothing is converted: a code is the text that stands in the file. Messages
name file, row, column, what was found and what is expected, and show no text (see `found`).
"""

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from mechdistill.data.sources.found import DAMAGE, damaged, shown
from mechdistill.errors import InputError

LARGEST_FIELD = 16 * 2**20
"""Characters; the csv module's own limit of 131,072 is below the longest notes, and none at all
would let a quote that is never closed fill the memory."""
_FLOAT = re.compile(r"\d+\.0*|\d(\.\d+)?[eE]\+?\d+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_ ]{0,30}")
_NUMBERS_REMEDY = (
    "the column went through a program that takes it for numbers (pandas without dtype=str, a "
    "spreadsheet): take the file as it was published"
)


@dataclass(frozen=True)
class Column:
    """A column that is read: its name (case does not matter) and what its values look like.

    `expected` says the pattern in words. `show` makes of a wrong value what the message tells.
    """

    name: str
    pattern: re.Pattern[str] | None = None
    expected: str = ""
    show: Callable[[str], str] = shown


@dataclass
class Table:
    """A file and the columns that are read of it; iterating gives the values, in their order.

    `known` are further columns of the published format, which are skipped without a word. `rows`
    counts the rows read so far, the header not counted.
    """

    path: Path
    columns: tuple[Column, ...]
    known: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)
    rows: int = 0

    def __iter__(self) -> Iterator[list[str]]:
        """Values of each row.

        Raises:
            InputError: the file is cut off or damaged, a column is missing, a value is not as
                expected.
        """
        self.rows = 0
        with _opened(self.path) as (text, raw):
            records = self._records(text, raw)
            places, width = self._places(next(records, None))
            for self.rows, record in enumerate(records, start=1):
                if len(record) != width:
                    raise self.error(
                        f"found {len(record)} fields, expected {width}",
                        "mend the row (quotes around a field with commas, quotes doubled inside, "
                        "no empty line), or take the file as it was published",
                    )
                values = [record[place] for place in places]
                for value, column in zip(values, self.columns, strict=True):
                    if column.pattern is not None and not column.pattern.fullmatch(value):
                        raise self.value_error(column, value)
                yield values

    def error(self, what: str, remedy: str) -> InputError:
        """An error about the row that was read last."""
        return InputError(f"{self.path}, row {self.rows}: {what}", remedy)

    def value_error(self, column: Column, value: str) -> InputError:
        """An error about a value of the row that was read last."""
        floating = _FLOAT.fullmatch(value) is not None
        return self.error(
            f"column {column.name}: found {column.show(value)}, expected {column.expected}",
            _NUMBERS_REMEDY if floating else "mend the value, or take the file as it was published",
        )

    def _records(self, text: TextIO, raw: BinaryIO) -> Iterator[list[str]]:
        read = 0  # records, the header counted
        before = csv.field_size_limit(LARGEST_FIELD)
        try:
            for record in csv.reader(text, strict=True):
                yield record
                read += 1
        except DAMAGE as error:
            raise damaged(self.path, f"row {max(0, read - 1)}", raw.tell()) from error
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise InputError(
                f"{self.path}, behind row {max(0, read - 1)}: byte 0x{byte:02x} is no UTF-8 (the "
                "fault lies in the next few rows)",
                "take the file as it was published, or convert it to UTF-8",
            ) from None  # the error holds the text around the byte
        except csv.Error as error:
            raise InputError(
                f"{self.path}, row {read}: {error}",
                "a quote is not closed, or stands alone within a field: take the file as it was "
                "published",
            ) from None
        finally:
            csv.field_size_limit(before)

    def _places(self, header: list[str] | None) -> tuple[list[int], int]:
        """Where the columns stand, and the number of fields of a row."""
        if header is None:
            raise InputError(f"{self.path} is empty", "fetch the file again")
        names = [name.strip().lower() for name in header]
        wanted = [column.name for column in self.columns]
        missing = [name for name in wanted if names.count(name.lower()) != 1]
        if missing:
            twice = [name for name in missing if name.lower() in names]
            raise InputError(
                f"{self.path}: column {', '.join(missing)} "
                f"{'stands there twice' if twice else 'is missing'} (its first line has "
                f"{len(names)} fields, expected are {', '.join(wanted)})",
                "give the file its header line back, with these names in upper or lower case",
            )
        known = {name.lower() for name in (*wanted, *self.known)}
        extra = [name for name in names if name not in known]
        if extra and not self.warnings:
            told = [name if _NAME.fullmatch(name) else "(no name)" for name in extra]
            self.warnings.append(f"{self.path}: columns {', '.join(told)} are ignored")
        return [names.index(name.lower()) for name in wanted], len(names)


def find_table(
    folder: Path, name: str, columns: Sequence[Column], known: Sequence[str] = ()
) -> Table:
    """The table NAME.csv.gz or NAME.csv in a folder.

    Raises:
        InputError: none of them is there, or both are.
    """
    there = [path for path in candidates(folder, name) if path.is_file()]
    if len(there) != 1:
        both = " and ".join(str(path) for path in candidates(folder, name))
        raise InputError(
            f"{both} are both there" if there else f"{folder}/{name}.csv.gz (or .csv) is missing",
            "keep one of them" if there else "put it there",
        )
    return Table(there[0], tuple(columns), tuple(known))


def candidates(folder: Path, name: str) -> tuple[Path, Path]:
    """The two names that a table may have."""
    return folder / f"{name}.csv.gz", folder / f"{name}.csv"


def require_files(folder: Path, names: Sequence[str], remedy: str) -> None:
    """Raise an InputError that names all tables which are not in the folder."""
    if not folder.is_dir():
        raise InputError(f"data.source.folder is {folder}, which is no folder", remedy)
    missing = [
        name for name in names if not any(path.is_file() for path in candidates(folder, name))
    ]
    if missing:
        listed = ", ".join(f"{name}.csv.gz" for name in missing)
        raise InputError(f"{folder} has no {listed} (.csv does too)", remedy)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[TextIO, BinaryIO]]:
    """Text of a file, a byte order mark dropped, and the file below it, for its position."""
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if path.suffix == ".gz" and not packed:
            raise InputError(f"{path} is no gzip file", "fetch it again, or drop .gz from its name")
        # newline="": the csv module tells ends of rows from those within quotes by itself
        with (
            gzip.open(raw) if packed else raw as binary,
            io.TextIOWrapper(cast(BinaryIO, binary), "utf-8-sig", newline="") as text,
        ):
            yield text, raw

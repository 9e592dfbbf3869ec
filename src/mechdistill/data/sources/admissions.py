"""Notes and codes of hospital admissions, common to MIMIC-III and MIMIC-IV.

Texts go to a private file on disk and come back admission by admission, so memory holds codes and
digests, never more than some texts.
"""

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Note:
    """A note: keys of its admission and patient, its place among others, and its text."""

    admission: int
    patient: int
    addendum: bool
    order: tuple[str, int]  # what notes of an admission are sorted by, addenda behind the others
    text: str


@dataclass
class Codes:
    """Codes by admission, each once, in the order of the file."""

    by_admission: dict[int, list[str]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)

    def add(self, admission: int, code: str) -> bool:
        """Note a code; False if the admission has it already."""
        codes = self.by_admission.setdefault(admission, [])
        if code in codes:
            return False
        codes.append(self._texts.setdefault(code, code))  # one text for all admissions
        return True

    def of(self, admission: int) -> tuple[str, ...]:
        """Codes of an admission, sorted."""
        return tuple(sorted(self.by_admission.get(admission, ())))


class Seen:
    """Which (admission, text) have been there: digests alone are kept."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def again(self, note: Note) -> bool:
        """Whether the admission's text was there before."""
        key = f"{note.admission}:{note.text}".encode()
        digest = hashlib.blake2b(key, digest_size=16).digest()
        if digest in self._digests:
            return True
        self._digests.add(digest)
        return False


class NoteStore:
    """Notes in a file without a name, which is gone when the process is, however it ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._base = connection
        self._base.execute(
            "CREATE TABLE notes (admission INTEGER, patient INTEGER, addendum INTEGER,"
            " word TEXT, number INTEGER, text TEXT)"
        )
        self._base.execute("CREATE INDEX place ON notes (admission, addendum, word, number)")

    def add(self, note: Note) -> None:
        """Keep a note."""
        row = (note.admission, note.patient, note.addendum, *note.order, note.text)
        self._base.execute("INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?)", row)

    def admissions(self) -> list[int]:
        """Admissions that have a note, in order."""
        rows = self._base.execute("SELECT DISTINCT admission FROM notes ORDER BY admission")
        return [admission for (admission,) in rows]

    def texts(self, admissions: Iterable[int]) -> Iterator[tuple[int, int, str]]:
        """(admission, patient, text) of some admissions; notes are parted by an empty line."""
        for admission in admissions:
            rows = self._base.execute(
                "SELECT patient, text FROM notes WHERE admission = ?"
                " ORDER BY admission, addendum, word, number, rowid",
                (admission,),
            ).fetchall()
            yield admission, rows[0][0], "\n\n".join(text for _, text in rows)


@contextmanager
def note_store(folder: Path) -> Iterator[NoteStore]:
    """A store whose file lies in a folder, and never under a name there.

    SQLite unlinks a temporary database as soon as it has opened it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = os.environ.get("SQLITE_TMPDIR")
    os.environ["SQLITE_TMPDIR"] = str(folder)
    connection = sqlite3.connect("")
    try:
        yield NoteStore(connection)
    finally:
        connection.close()
        if before is None:
            del os.environ["SQLITE_TMPDIR"]
        else:
            os.environ["SQLITE_TMPDIR"] = before


def count_codes(admissions: Iterable[int], codes: Mapping[str, Codes]) -> dict[str, Counter[str]]:
    """By kind of code, how many of the admissions have each code.

    Counted a kind over all documents, before any split, as the published recipe does.
    """
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in codes}
    for admission in admissions:
        for kind, found in codes.items():
            counts[kind].update(found.by_admission.get(admission, ()))
    return counts

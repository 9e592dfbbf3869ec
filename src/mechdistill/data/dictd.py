"""Dictionaries in the format of dictd: an index of headwords and their text, compressed.

| file | content |
|---|---|
| `NAME.index` | one headword a line: headword, offset, length, parted by tabs |
| `NAME.dict.dz` | gzip (dictzip adds marks for random access, which gzip skips); UTF-8 |

Offsets and lengths count bytes of the text, written in the digits A-Z, a-z, 0-9, +, / (base 64,
most significant first). Several headwords may lead to one entry.
"""

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from mechdistill.errors import InputError

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_OWN_HEADWORDS = "00-database"
"""Headwords that begin so tell about the dictionary itself."""


@dataclass(frozen=True)
class Entry:
    """A text and the headwords that lead to it, in the order of the index."""

    headwords: tuple[str, ...]
    text: str


def dictionary_files(folder: Path, name: str) -> tuple[Path, Path]:
    """Index and data of a dictionary in a folder."""
    return folder / f"{name}.index", folder / f"{name}.dict.dz"


def read_dictionary(folder: Path, name: str, sha256: str) -> list[Entry]:
    """The entries of a dictionary in the order of their text, those on itself left out.

    Args:
        sha256: of `NAME.dict.dz`, in hexadecimal.

    Raises:
        InputError: a file is missing or damaged, the data are another edition's, or an index line
            points outside the data.
    """
    index, data = dictionary_files(folder, name)
    packed = _content(data)
    found = hashlib.sha256(packed).hexdigest()
    if found != sha256:
        raise InputError(
            f"{data} has the SHA-256 {found}, not {sha256}",
            "install the edition that the study names, or set data.foldoc.sha256 to the one found "
            "to study this edition",
        )
    try:
        text = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{data} cannot be unpacked: {error}", "install it again") from error
    headwords: dict[tuple[int, int], list[str]] = {}
    for number, line in enumerate(_content(index).decode("utf-8", "replace").splitlines(), 1):
        headword, place = _place(line, f"{index}, line {number}", len(text))
        if not headword.startswith(_OWN_HEADWORDS):
            headwords.setdefault(place, []).append(headword)
    return [
        Entry(tuple(headwords[start, length]), text[start : start + length].decode("utf-8"))
        for start, length in sorted(headwords)
    ]


def number_of(digits: str) -> int:
    """Value of a number in dictd's base 64.

    >>> number_of("K5")
    697

    Raises:
        KeyError: another character than the 64 digits.
    """
    value = 0
    for digit in digits:
        value = value * len(_DIGITS) + _VALUES[digit]
    return value


def digits_of(number: int) -> str:
    """A number >= 0 in dictd's base 64.

    >>> digits_of(697)
    'K5'
    """
    digits = _DIGITS[number % len(_DIGITS)]
    while number := number // len(_DIGITS):
        digits = _DIGITS[number % len(_DIGITS)] + digits
    return digits


def _place(line: str, where: str, size: int) -> tuple[str, tuple[int, int]]:
    """Headword and (offset, length) of an index line."""
    remedy = "install the dictionary again: index and data must be of one edition"
    try:
        headword, offset, length = line.split("\t")[:3]
        start, count = number_of(offset), number_of(length)
    except (ValueError, KeyError) as error:
        raise InputError(
            f"{where}: {line[:60]!r} is no headword, offset and length", remedy
        ) from error
    if start + count > size:
        raise InputError(f"{where}: {headword!r} ends behind the {size} bytes of data", remedy)
    return headword, (start, count)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", "install the dictionary again"
        ) from error

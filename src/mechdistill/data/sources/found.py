"""What an error message may show of a file: numbers and codes, and of all else only its length.

A row whose quotes are broken puts words of a note where a code belongs, so no value is shown that
could be one.
"""

import gzip
import re
import zlib
from pathlib import Path

from mechdistill.errors import InputError

DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a gzip file raises that is cut off or damaged."""
_HARMLESS = re.compile(r"[A-Za-z]{0,2}\d[\dA-Za-z]{0,6}(\.\d{0,4})?|[\d.:,eE+-]{1,12}|[A-Z]{2}")


def shown(value: str) -> str:
    """A value for a message.

    >>> shown("4019.0"), shown(""), shown("Patient was seen")
    ("'4019.0'", 'nothing', 'a text of 16 characters')
    """
    if not value:
        return "nothing"
    if _HARMLESS.fullmatch(value):
        return repr(value)
    return f"a text of {len(value)} characters"


def length_of(value: str) -> str:
    """An identifier of a person for a message: how long it is, and no more.

    >>> length_of("10000032.0")
    'a number of 10 characters that is not whole'
    """
    if value.isdigit():
        return f"a number of {len(value)} digits"
    if re.fullmatch(r"[\d.eE+]+", value):
        return f"a number of {len(value)} characters that is not whole"
    return f"a text of {len(value)} characters" if value else "nothing"


def damaged(path: Path, behind: str, byte: int) -> InputError:
    """An error about a gzip file that is cut off or damaged, behind a row and at a byte of it."""
    return InputError(
        f"{path} is cut off or damaged behind {behind}, at byte {byte} of the file: its gzip data "
        "end too early or do not check",
        "fetch the file again and compare its SHA-256 with the published one",
    )

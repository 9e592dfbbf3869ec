"""An invented dictionary in dictd's format: no text of a real one is needed by the tests.

Subjects have articles of their own and words of their own. Documents link to articles of one or
two subjects; some name them in "See also" sentences; some articles link back.
"""

import gzip
import hashlib
from pathlib import Path

import numpy as np

from mechdistill.data.dictd import digits_of

SUBJECTS = ("baking", "weaving", "sailing", "mining", "pottery", "fencing", "grafting", "carving")
ARTICLES = 5
WORDS = 6
DOCUMENTS = 600
_ABOUT = ("00-database-info", "00-database-info\n\n   An invented dictionary.\n\n")


def word(*numbers: int) -> str:
    """A word of its own for each row of numbers.

    >>> word(1, 2)
    'zabebin'
    """
    return "za" + "".join("bcdfghklmprstvwz"[n // 4] + "aeio"[n % 4] for n in numbers) + "n"


def subject_words(subject: int) -> list[str]:
    return [word(subject, 20 + index) for index in range(WORDS)]


def title(subject: int, article: int) -> str:
    return f"{word(subject, article, 40)} {word(subject, article, 41)}"


def entries(seed: int = 0) -> list[tuple[tuple[str, ...], str]]:
    """(headwords, text) of each entry; labels' articles come first."""
    rng = np.random.default_rng(seed)
    made = [(_ABOUT[:1], _ABOUT[1])]
    for subject, name in enumerate(SUBJECTS):
        for article in range(ARTICLES):
            words = " ".join(rng.permutation(subject_words(subject)).tolist())
            other = title(subject, (article + 1) % ARTICLES)
            term = f"term {word(subject, article, 42)}"
            body = f"<{name}> What {words} and {{{term}}} tell.\n   (See also {{{other}}})."
            made.append(_entry([title(subject, article), word(subject, article, 43)], body))
            made.append(_entry([term], "No more than a term."))
    for number in range(DOCUMENTS):
        made.append(_document(number, rng))
    made.append(_entry(["redirected"], f"{{{title(0, 0)}}}"))
    made.append(_entry(["seen"], "See {redirected}.\n\n   (2001-02-03)"))
    return made


def write_made_dictionary(folder: Path, name: str = "foldoc", seed: int = 0) -> str:
    """Write index and data into a folder; returns the SHA-256 of the data."""
    folder.mkdir(parents=True, exist_ok=True)
    data, lines = b"", []
    for headwords, text in entries(seed):
        encoded = text.encode()
        place = f"{digits_of(len(data))}\t{digits_of(len(encoded))}"
        lines += [f"{headword}\t{place}" for headword in headwords]
        data += encoded
    packed = gzip.compress(data, mtime=0)
    (folder / f"{name}.dict.dz").write_bytes(packed)
    (folder / f"{name}.index").write_text("".join(f"{line}\n" for line in sorted(lines)))
    return hashlib.sha256(packed).hexdigest()


def _entry(headwords: list[str], body: str) -> tuple[tuple[str, ...], str]:
    head = "\n".join(headwords)
    return tuple(headwords), f"{head}\n\n   {body}\n\n"


def _document(number: int, rng: np.random.Generator) -> tuple[tuple[str, ...], str]:
    """Links to one article of one or two subjects, named with two words of the subject."""
    parts = []
    for subject in rng.permutation(len(SUBJECTS))[: 1 + int(rng.random() < 0.5)].tolist():
        told = " and ".join(rng.permutation(subject_words(subject))[:2].tolist())
        target = title(subject, int(rng.integers(ARTICLES)))
        parts.append(f"Here {told} go with {{{target}}}.")
    where = rng.permutation(len(SUBJECTS))[: 1 + int(rng.random() < 0.3)].tolist()
    further = ", ".join(f"{{{title(subject, int(rng.integers(ARTICLES)))}}}" for subject in where)
    filler = "It is as long as a text must be to count as one, and says little else. " * 2
    body = f"{' '.join(parts)} {filler}\n\n   See also {further}.\n\n   (1999-01-01)"
    return _entry([f"document {word(number // 60, number % 60, 45)}"], body)

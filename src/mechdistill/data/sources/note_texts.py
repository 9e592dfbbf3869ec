"""Texts of notes: line ends, the clean-up of the published recipes."""

import re

_SPACED = bytes(
    ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else ord(" ")
    for code in range(256)
)
_LETTER = re.compile(r"[A-Za-z]")
_WORDS = re.compile(r"\w+")


def plain_lines(text: str) -> str:
    """The text with line ends of one kind, and no white space around it."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def is_empty(text: str) -> bool:
    """Whether the clean-up leaves nothing of a text."""
    return _LETTER.search(text) is None and not cleaned_words(text)


def cleaned_words(text: str) -> list[str]:
    r"""Words of the MIMIC-IV recipe: lower case, letters and digits alone, without numbers.

    As published, a number goes if white space stands on both sides of it (`(\s\d+)+\s` once all
    else than letters and digits is white space), so that one at the very start or end stays.

    >>> cleaned_words("BP 120/80, on 40 mg Lasix.")
    ['bp', 'on', 'mg', 'lasix']
    >>> cleaned_words("12 mg of 40")
    ['12', 'mg', 'of', '40']
    """
    spaced = text.lower().encode("ascii", "replace").translate(_SPACED)
    words = spaced.decode("ascii").split()
    last = len(words) - 1
    open_start, open_end = not spaced[:1].isspace(), not spaced[-1:].isspace()
    return [
        word
        for place, word in enumerate(words)
        if not word.isdigit() or (place == 0 and open_start) or (place == last and open_end)
    ]


def words_of_caml(text: str) -> list[str]:
    r"""Words of the MIMIC-III recipe: `\w+` in lower case, numbers left out.

    >>> words_of_caml("Seen [**2151-7-16**] with A1c 9")
    ['seen', 'with', 'a1c']
    """
    return [word for word in _WORDS.findall(text.lower()) if not word.isnumeric()]

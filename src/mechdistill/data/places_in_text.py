"""Words, patterns and character spans that somebody points out in a text, as character spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mechdistill.errors import InputError

Span = tuple[int, int]
Place = str | re.Pattern[str] | Span
"""Words as they are written (whole words, every occurrence); a compiled regular expression (every
match); or [start, end) characters."""


class Part(NamedTuple):
    """A part of a text, [start, end), by the name that messages give it."""

    name: str
    start: int
    end: int


def listed(places: Place | Sequence[Place]) -> list[Place]:
    """One place or several, as a list: a single string is one place, not one a letter."""
    if isinstance(places, str | re.Pattern):
        return [places]
    if isinstance(places, tuple) and len(places) == 2 and all(isinstance(p, int) for p in places):
        return [places]  # type: ignore[list-item]
    return list(places)  # type: ignore[arg-type]


def occurrences(text: str, words: Sequence[str]) -> list[tuple[str, Span]]:
    """Every whole-word occurrence of any of the words, in order; the longest where they overlap."""
    chosen = sorted({word for word in words if word}, key=len, reverse=True)
    if not chosen:
        return []
    either = "|".join(re.escape(word) for word in chosen)
    found = re.finditer(rf"(?<!\w)(?:{either})(?!\w)", text)
    return [(match[0], match.span()) for match in found]


def check_seam(before: str, after: str, name: str) -> None:
    """Two texts are put together as they are; a word that runs into the next one is a slip.

    Raises:
        InputError: the first one is empty, or one word runs into another.
    """
    if not before.strip():
        raise InputError(f"{name} has an empty prompt", "give the text that comes first")
    if re.match(r"\w\w", before[-1] + after[:1]):
        raise InputError(
            f"{name}: {before[-12:]!r} runs into {after[:12]!r}",
            "begin what follows with a space: texts are put together as they are",
        )


def spans_of(place: Place, text: str, what: str, part: Part) -> list[Span]:
    """Where a place is in a text.

    Args:
        text: which spans index.
        what: the place's role, for messages ("anchor").
        part: where words and patterns are looked for. Spans may lie anywhere.

    Raises:
        InputError: it is nowhere, empty, or reaches beyond the text.
    """
    if isinstance(place, tuple):
        return [_checked(place, text, what)]
    searched = text[part.start : part.end]
    if isinstance(place, re.Pattern):
        found = [match.span() for match in place.finditer(searched) if match[0]]
        if not found:
            raise InputError(
                f"{what}: the pattern {place.pattern!r} matches nothing in {part.name}",
                "change it, or give a span of characters",
            )
    else:
        if not place.strip():
            raise InputError(f"{what}: the text to look for is empty", "name at least one word")
        found = [span for _, span in occurrences(searched, [place])]
        if not found:
            raise InputError(f"{what}: {place!r} is not in {part.name}", _remedy(place, text))
    return [(part.start + start, part.start + end) for start, end in found]


def _remedy(words: str, text: str) -> str:
    if occurrences(text, [words]):
        return "it stands elsewhere: point at it there by its span of characters"
    return (
        "write it as it stands there (case counts, whole words only), or give a compiled regular "
        "expression or a span of characters"
    )


def _checked(span: Span, text: str, what: str) -> Span:
    start, end = span
    if start >= end:
        raise InputError(f"{what}: the span ({start}, {end}) is empty", "give [start, end)")
    if start < 0 or end > len(text):
        raise InputError(
            f"{what}: the span ({start}, {end}) reaches beyond the text's {len(text)} characters",
            "count characters from 0, in prompt + reasoning",
        )
    return span

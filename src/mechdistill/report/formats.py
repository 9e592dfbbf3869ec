"""Numbers as people read them: three figures, true minus signs where HTML allows, no "nan"."""

from __future__ import annotations

import math

MISSING = "–"
NOISE = 1e-6
"""Smaller numbers are rounding noise of sums of floats, and print as 0."""


def plain(value: float | None, digits: int = 3) -> str:
    """`0.734`; small numbers keep `digits` figures, missing ones show a dash."""
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) < NOISE:
        return "0"
    if abs(value) < 10 ** (1 - digits):
        text = f"{value:.2g}"
    elif abs(value) >= 1000:
        text = f"{value:.0f}"
    else:
        text = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.1f}"
    return text


def signed(value: float | None, digits: int = 3, sign: bool = True) -> str:
    """`+0.120`: a difference; `sign` off gives the plain number."""
    text = plain(value, digits)
    if not sign or text == MISSING or text == "0" or text.startswith("-"):
        return text
    return f"+{text}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """`[0.71, 0.76]`, or nothing where no interval is known."""
    ends = plain(low, digits), plain(high, digits)
    return "" if MISSING in ends else f"[{ends[0]}, {ends[1]}]"


def percent(value: float | None) -> str:
    """`39 %` from 39.2; a dash where undefined."""
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{value:.0f}"
    return f"{0 if text == '-0' else text} %"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 note`, `3 notes`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

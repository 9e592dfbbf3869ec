"""Show how far a long loop is: one live line on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TextIO, TypeVar

T = TypeVar("T")

LOG_EVERY = 5.0
"""Seconds between two lines of a log."""
LIVE_EVERY = 0.2
"""Seconds between two updates of a terminal's line."""


def track(
    iterable: Iterable[T],
    what: str,
    total: int | None = None,
    *,
    done: int = 0,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[T]:
    """Pass the items on and report count, rate and time left on `stream` (standard error).

    Args:
        iterable: the items.
        what: the name of the loop, with the item ("training step").
        total: number of items, `len(iterable)` if it has one.
        done: items finished by an earlier run that this one resumes; not part of the rate.
    """
    out = sys.stderr if stream is None else stream
    if total is None and isinstance(iterable, Sized):
        total = done + len(iterable)
    live = out.isatty()
    pause = LIVE_EVERY if live else LOG_EVERY
    start = shown = clock()
    count = told = done
    for item in iterable:
        yield item
        count += 1
        now = clock()
        if now - shown >= pause:
            shown, told = now, count
            _show(out, live, line(what, count, total, count - done, now - start))
    if live or (shown != start and told != count):  # a short loop says nothing in a log
        _show(out, live, line(what, count, total, count - done, clock() - start))
    if live:
        out.write("\n")


def line(what: str, count: int, total: int | None, counted: int, seconds: float) -> str:
    """One line of progress, such as `training step 120/400 (30%), 3.2/s, 1 min 27 s left`."""
    parts = [f"{what} {count}"]
    if total is not None:
        percent = f" ({100 * count // total}%)" if total else ""
        parts = [f"{what} {count}/{total}{percent}"]
    if counted and seconds > 0:
        rate = counted / seconds
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.1f} s each")
        finished = total is not None and count >= total
        if total is not None and not finished:
            parts.append(f"{duration((total - count) / rate)} left")
        else:
            parts.append(duration(seconds))
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds in words: `7 s`, `1 min 27 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _show(out: TextIO, live: bool, text: str) -> None:
    out.write(f"\r\x1b[K{text}" if live else f"{text}\n")
    out.flush()

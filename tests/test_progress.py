"""Progress: items pass unchanged; count, rate and time left are right."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from mechdistill.progress import duration, line, track


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def ticking(step: float) -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += step


def run(items: int, seconds_each: float, stream: io.StringIO, done: int = 0) -> list[str]:
    clock = ticking(seconds_each).__next__
    passed = list(track(range(items), "step", done=done, stream=stream, clock=clock))
    assert passed == list(range(items))
    return stream.getvalue().splitlines()


def test_log_gets_a_line_every_five_seconds_and_the_total() -> None:
    lines = run(10, 2.0, io.StringIO())
    assert lines == [
        "step 3/10 (30%), 2.0 s each, 14 s left",
        "step 6/10 (60%), 2.0 s each, 8 s left",
        "step 9/10 (90%), 2.0 s each, 2 s left",
        "step 10/10 (100%), 2.2 s each, 22 s",
    ]


def test_end_is_told_once() -> None:
    assert run(3, 5.0, io.StringIO())[-1] == "step 3/3 (100%), 5.0 s each, 15 s"
    assert len(run(3, 5.0, io.StringIO())) == 3


def test_short_loop_says_nothing_in_a_log() -> None:
    assert run(10, 0.01, io.StringIO()) == []


def test_resumed_loop_counts_from_where_it_was_but_rates_what_it_did() -> None:
    assert run(5, 5.0, io.StringIO(), done=15)[0] == "step 16/20 (80%), 5.0 s each, 20 s left"


def test_terminal_gets_one_live_line() -> None:
    stream = Terminal()
    run(10, 0.5, stream)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().count("\r") == 11


def test_unknown_total_shows_count_and_rate() -> None:
    assert line("example", 30, None, 30, 10.0) == "example 30, 3.0/s, 10 s"


def test_empty_loop_is_fine() -> None:
    assert run(0, 1.0, io.StringIO()) == []
    assert line("step", 0, 0, 0, 0.0) == "step 0/0"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(7.4, "7 s"), (87, "1 min 27 s"), (7500, "2 h 5 min"), (59.9, "1 min 0 s")],
)
def test_duration_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words

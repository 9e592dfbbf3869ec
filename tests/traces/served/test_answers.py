"""Finished answers outlive a kill at any byte, and belong to one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdistill.traces.served.answers import AnswerFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints" / "answers.jsonl"


def filled(path: Path) -> AnswerFile:
    answers = AnswerFile(path, "run")
    answers.note_server({"version": "1"})
    for number in range(3):
        answers.add([number, 7], [number] * 4)
    return answers


def test_answers_are_found_again_by_their_prompt(path):
    filled(path)
    again = AnswerFile(path, "run")
    assert [again.get([number, 7]) for number in range(4)] == [[0] * 4, [1] * 4, [2] * 4, None]
    assert again.servers == [{"version": "1", "answers": 3}]


def test_a_kill_at_any_byte_costs_at_most_the_last_answer(path):
    filled(path)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    ends = [len(b"".join(lines[:n])) for n in range(len(lines) + 1)]
    for length in sorted({*range(0, len(whole), 29), *(e + d for e in ends for d in (-1, 0, 1))}):
        path.write_bytes(whole[: max(0, length)])
        again = AnswerFile(path, "run")
        complete = sum(end <= length for end in ends[1:])
        kept = [number for number in range(3) if again.get([number, 7]) is not None]
        assert kept == list(range(max(0, complete - 2)))
        again.note_server({"version": "2"})
        again.add([9], [1])
        assert AnswerFile(path, "run").get([9]) == [1]


def test_each_server_is_noted_with_its_answers(path):
    filled(path)
    again = AnswerFile(path, "run")
    again.note_server({"version": "2"})
    again.add([8], [5])
    assert AnswerFile(path, "run").servers == [
        {"version": "1", "answers": 3},
        {"version": "2", "answers": 1},
    ]


def test_answers_of_another_run_are_replaced(path):
    filled(path)
    other = AnswerFile(path, "another model")
    assert len(other) == 0 and other.servers == []
    assert len(AnswerFile(path, "run")) == 0


def test_nothing_is_left_when_all_is_saved_elsewhere(path):
    filled(path).discard()
    assert list(path.parent.iterdir()) == []

"""Choosing rationales: each filter by hand, ties by name, and difficulty from the formula."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from mechdistill.distil.selection import (
    Candidate,
    difficulties,
    easy,
    jaccard,
    lists_its_answer,
    right,
    set_f1,
    unlike,
)
from mechdistill.traces.parse import Mention, Trace
from tests.distil.conftest import PAD, tiny_model


def candidate(example: str, draw: int, **changed: Any) -> Candidate:
    usual = {"tokens": (draw, 2, 3, 4), "f1": 1.0, "difficulty": 0.5}
    return Candidate(example, draw, **(usual | changed))


def names(candidates: list[Candidate]) -> list[tuple[str, int]]:
    return [(c.example, c.draw) for c in candidates]


def trace(reasoning: tuple[int, ...], answer: tuple[int, ...]) -> Trace:
    prompt = (1, 5, 6, 7)
    start = len(prompt) + len(reasoning)
    return Trace(
        example="training-0",
        split="training",
        tokens=(*prompt, *reasoning, *answer),
        prompt_length=len(prompt),
        text="",
        status="ok",
        answer=("A",),
        early=(),
        late_start=-1,
        reasoning_end=start,
        mentions=(Mention("label", "A", start + 1, start + 2, "answer", -1, "kept"),),
        events=(),
        refine=(),
    )


def test_set_f1_of_label_lists() -> None:
    assert set_f1(["a", "b"], ["b", "c", "d"]) == pytest.approx(2 / 5)
    assert set_f1(["a", "a"], ["a"]) == 1.0
    assert set_f1([], ["a"]) == set_f1(["a"], []) == 0.0


def test_jaccard_of_three_token_runs() -> None:
    assert jaccard((1, 2, 3, 4), (1, 2, 3, 5)) == pytest.approx(1 / 3)
    assert jaccard((1, 2, 3), (1, 2, 3)) == 1.0
    assert jaccard((1, 2), (3, 4)) == 1.0  # neither has a run of three


def test_wrong_rationales_go_but_the_best_of_each_example_stays() -> None:
    all_of = [
        candidate("a", 0, f1=0.2),
        candidate("a", 1, f1=0.4),
        candidate("b", 0, f1=1.0),
        candidate("b", 1, f1=0.5),
        candidate("b", 2, f1=0.1),
    ]
    assert names(right(all_of, 0.5, 1)) == [("a", 1), ("b", 0), ("b", 1)]
    assert names(right(all_of, 0.5, 0)) == [("b", 0), ("b", 1)]


def test_of_two_alike_the_easier_one_stays() -> None:
    alike = {"tokens": (1, 2, 3, 4, 5)}
    all_of = [
        candidate("a", 0, difficulty=0.9, **alike),
        candidate("a", 1, difficulty=0.2, **alike),
        candidate("a", 2, difficulty=0.4, tokens=(9, 8, 7, 6)),
        candidate("b", 0, **alike),  # alike, but another example's
    ]
    assert names(unlike(all_of, 0.7)) == [("a", 1), ("a", 2), ("b", 0)]


def test_the_easiest_share_stays_and_ties_go_by_name() -> None:
    all_of = [candidate("b", 0), candidate("a", 1), candidate("a", 0), candidate("c", 0)]
    assert names(easy(all_of, 0.5, "lowest")) == [("a", 0), ("a", 1)]
    assert names(easy(list(reversed(all_of)), 0.5, "lowest")) == [("a", 0), ("a", 1)]


def test_one_rationale_stays_whatever_the_share() -> None:
    assert len(easy([candidate("a", 0)], 0.01, "lowest")) == 1


def test_the_band_leaves_out_what_gives_the_answer_away_and_what_harms() -> None:
    values = [0.01, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.5]
    all_of = [candidate("a", i, difficulty=value) for i, value in enumerate(values)]
    assert [c.draw for c in easy(all_of, 1.0, "band")] == [1, 2, 3, 4, 5, 6, 7]


def slow_perplexity(model: Any, context: tuple[int, ...], answer: tuple[int, ...]) -> float:
    total = 0.0
    for i, token in enumerate(answer):
        with torch.no_grad():
            logits = model(torch.tensor([[*context, *answer[:i]]])).logits[0, -1].double()
        total -= float(torch.log_softmax(logits, -1)[token])
    return math.exp(total / len(answer))


def test_difficulty_is_a_ratio_of_perplexities_token_by_token() -> None:
    model = tiny_model(2)
    traces = [trace((8, 9, 10), (11, 12, 2)), trace((9, 9), (11, 12, 2)), trace((), (13, 2))]
    behind, alone = difficulties(model, traces, PAD)
    for number, of in enumerate(traces):
        reasoning, answer = of.tokens[4 : of.reasoning_end], of.tokens[of.reasoning_end :]
        wanted = slow_perplexity(model, (*of.tokens[:4], *reasoning), answer)
        assert behind[number] == pytest.approx(wanted, rel=1e-4)
        assert alone[number] == pytest.approx(
            slow_perplexity(model, of.tokens[:4], answer), rel=1e-4
        )
    assert alone[0] == alone[1]  # one prompt, one answer: read once


def test_a_rationale_of_no_words_neither_helps_nor_harms() -> None:
    behind, alone = difficulties(tiny_model(2), [trace((), (13, 2))], PAD)
    assert behind[0] / alone[0] == pytest.approx(1.0)


def test_a_label_list_in_the_reasoning_is_seen() -> None:
    told = trace((8, 12, 9), (11, 12, 2))
    assert lists_its_answer(told)
    assert not lists_its_answer(trace((8, 9), (11, 12, 2)))
    assert not lists_its_answer(replace(told, mentions=()))

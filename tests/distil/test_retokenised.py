"""The teacher's traces in the tokens of students that have another tokenizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from mechdistill.data.alignment import BUCKET
from mechdistill.data.examples import Example, draw_cases, example_of
from mechdistill.data.frame import Frame
from mechdistill.data.labels import LabelSpace, build_label_space
from mechdistill.data.pretraining import base_texts
from mechdistill.data.student_tokenizer import train_byte_level_bpe
from mechdistill.data.token_spans import token_spans
from mechdistill.data.tokenizer import build_tokenizer, decode_trace, encode_trace
from mechdistill.data.world import WorldSettings
from mechdistill.distil.retokenised import (
    Retokenised,
    require_room,
    retokenise,
    retokenise_all,
    shared_table,
)
from mechdistill.distil.sequences import decidable, whole_trace
from mechdistill.errors import InputError
from mechdistill.traces.parse import Trace, parse_trace
from tests.small_tokenizers import byte_fallback, byte_level, unigram

WORLD = WorldSettings(seed=7, groups_in_context=4, problems_min=1, problems_max=2)


@pytest.fixture(scope="module")
def space() -> LabelSpace:
    return build_label_space(7, 6, 3, 4, 1)


@pytest.fixture(scope="module")
def world(space: LabelSpace) -> Any:
    return build_tokenizer(space)


@pytest.fixture(scope="module")
def texts(space: LabelSpace) -> list[str]:
    return base_texts(space, WORLD, 200, np.random.default_rng(0))


@pytest.fixture(scope="module")
def tokenizers(world: Any, texts: list[str]) -> dict[str, Any]:
    return {
        "world": world,
        "trained": train_byte_level_bpe(texts, 600),
        "chat": byte_level(texts, size=900),
        "byte_fallback": byte_fallback(texts, size=500),
        "unigram": unigram(texts, size=300),
    }


def examples_of(space: LabelSpace, frame: Frame | None = None) -> list[Example]:
    cases = draw_cases(space, WORLD, {"training": 4, "ranking": 1}, 7)
    framed = {} if frame is None else {"frame": frame}
    return [example_of(case, name, split, **framed) for name, split, case in cases]


def traces_of(examples: list[Example], tokenizer: Any, space: LabelSpace) -> list[Trace]:
    return [
        parse_trace(e, encode_trace(tokenizer, e.reference, e.prompt), tokenizer, space, 9)
        for e in examples
    ]


@pytest.fixture(scope="module")
def pairs(
    space: LabelSpace, tokenizers: dict[str, Any]
) -> dict[tuple[str, str], list[Retokenised]]:
    examples = examples_of(space)
    return {
        (first, second): retokenise_all(
            traces_of(examples, tokenizers[first], space),
            examples,
            tokenizers[first],
            tokenizers[second],
            space,
        )
        for first in ("world", "chat", "byte_fallback")
        for second in tokenizers
    }


def text_before(pair: Retokenised, side: str, query: int, example: Example) -> str:
    """What a position has seen, spelled from the ends."""
    ends = pair.teacher_ends if side == "teacher" else pair.student_ends
    whole = f"{example.prompt} {pair.teacher.text}".encode()
    return whole[: ends.ends[query]].decode()


def test_the_student_reads_the_same_text_and_what_it_says_is_the_same(pairs) -> None:
    for of in pairs.values():
        for pair in of:
            teacher, student = pair.teacher, pair.student
            assert student.text == teacher.text
            assert (student.status, student.answer) == (teacher.status, teacher.answer)
            for one, other in zip(teacher.mentions, student.mentions, strict=True):
                assert replace(one, start=0, end=0) == replace(other, start=0, end=0)
            assert len(pair.teacher_ends) == len(teacher.tokens)
            assert len(pair.student_ends) == len(student.tokens)


def test_ends_are_those_of_the_whole_text(pairs, tokenizers, space) -> None:
    """Byte by byte: prompt and trace decoded as one."""
    examples = {e.example: e for e in examples_of(space)}
    for (_, second), of in pairs.items():
        for pair in of:
            tokens, start = pair.student.tokens, pair.student.prompt_length
            prompt = examples[pair.student.example].prompt
            spelled, spans = token_spans(tokenizers[second], tokens[start:-1])
            lead = len(spelled) - len(spelled.lstrip())
            expected = [len(prompt) + 1 + end - lead for _, end in spans]
            assert list(pair.student_ends.ends[start:-1]) == expected


def test_shared_positions_see_the_same_text(pairs, space) -> None:
    examples = {e.example: e for e in examples_of(space)}
    for of in pairs.values():
        for pair in of:
            example = examples[pair.teacher.example]
            assert pair.early()
            for query, position in pair.early():
                assert query in pair.teacher.early
                seen = text_before(pair, "teacher", query, example)
                assert seen == text_before(pair, "student", position, example)
            for early in zip(*pair.early(), strict=True):
                assert list(early) == sorted(set(early))


def test_of_a_teacher_whose_tokens_are_words_every_position_is_shared(pairs) -> None:
    for (first, _), of in pairs.items():
        if first == "world":
            for pair in of:
                assert [query for query, _ in pair.early()] == list(pair.teacher.early)
                assert [at for at, _ in pair.refine()] == list(decidable(pair.teacher.refine))


def overlap(first: str, second: str) -> bool:
    """Whether the second goes on with the end of the first."""
    return second in first or any(second.startswith(first[i:]) for i in range(len(first)))


def test_decisions_of_both_are_about_the_same_options(pairs, tokenizers) -> None:
    """What each would write on from its position differs from its foil, and names the same."""
    for (first, second), of in pairs.items():
        for pair in of:
            assert len(pair.refine()) == len(decidable(pair.teacher.refine))
            for at, other in pair.refine():
                assert at.clause == other.clause
                assert other.target != other.foil
                spelled = [
                    decode_trace(tokenizer, [token]).strip(" ()")
                    for tokenizer, token in (
                        (tokenizers[first], at.target),
                        (tokenizers[second], other.target),
                    )
                ]
                assert overlap(*spelled) or overlap(*reversed(spelled))


def test_mentions_are_the_tokens_that_overlap_the_teachers(pairs) -> None:
    for of in pairs.values():
        for pair in of:
            spelled = [pair.student_ends.spelled(token) for token in range(len(pair.student_ends))]
            for at, other in pair.refine():
                for wanted, found in (
                    (at.shortlist, other.shortlist),
                    (at.near_miss, other.near_miss),
                ):
                    spans = [pair.teacher_ends.spelled(token) for token in wanted]
                    overlapping = {
                        token
                        for token, (begin, stop) in enumerate(spelled)
                        if any(max(start, begin) < min(end, stop) for start, end in spans)
                    }
                    # a space before a mention may be a token, or a part of the mention's first one
                    assert set(found) <= overlapping
                    lone = overlapping - set(found)
                    assert all(spelled[token][1] - spelled[token][0] == 1 for token in lone)


def test_the_early_window_is_the_same_text(pairs, space) -> None:
    examples = {e.example: e for e in examples_of(space)}
    for of in pairs.values():
        for pair in of:
            example = examples[pair.teacher.example]
            last, own = pair.teacher.early[-1] + 1, pair.student.early[-1] + 1
            window = text_before(pair, "teacher", last, example)
            assert window.startswith(text_before(pair, "student", own, example))
            assert pair.student_ends.spelled(own + 1)[1] > pair.teacher_ends.spelled(last)[1]


def test_special_tokens_and_the_first_key_are_in_the_bucket(pairs, tokenizers) -> None:
    for (first, second), of in pairs.items():
        for pair in of:
            sides = (
                (tokenizers[first], pair.teacher, pair.alignment.first),
                (tokenizers[second], pair.student, pair.alignment.second),
            )
            for tokenizer, trace, groups in sides:
                assert groups[0] == BUCKET
                for token, group in zip(trace.tokens, groups, strict=True):
                    assert token not in tokenizer.all_special_ids or group == BUCKET


def test_with_the_teachers_own_tokenizer_nothing_changes(pairs) -> None:
    for name in ("world", "chat", "byte_fallback"):
        for pair in pairs[name, name]:
            assert pair.student == replace(pair.teacher)
            assert pair.student_trace().early == pair.teacher.early
            assert pair.student_trace().refine == decidable(pair.teacher.refine)
            assert pair.alignment.first == pair.alignment.second
            assert all(a == b for a, b in pair.alignment.queries.items())
            shared = [group for group in pair.alignment.first if group != BUCKET]
            assert shared == list(range(pair.alignment.count))


def test_what_is_lost_is_counted(pairs) -> None:
    pair = pairs["chat", "byte_fallback"][0]
    table = shared_table([pair]).iloc[0]
    assert table.used
    assert table.early + table.early_lost == len(pair.teacher.early)
    assert table.refine + table.refine_lost == len(decidable(pair.teacher.refine))
    assert table.groups == pair.alignment.count
    sparse = replace(pair, alignment=replace(pair.alignment, queries={}))
    table = shared_table([sparse]).iloc[0]
    assert (table.early, table.early_lost) == (0, len(pair.teacher.early))
    assert table.refine_elsewhere == table.refine > 0


def test_a_prompt_with_a_chat_template_is_shared_but_for_its_marks(tokenizers, space) -> None:
    frame = Frame.of(tokenizers["chat"], "chat", 0)
    examples = examples_of(space, frame)[:3]
    traces = traces_of(examples, tokenizers["chat"], space)
    for second in ("trained", "unigram", "byte_fallback"):
        found = retokenise_all(traces, examples, tokenizers["chat"], tokenizers[second], space)
        for pair, example in zip(found, examples, strict=True):
            assert pair.student.status == "ok"
            ends_of_prompts = (pair.teacher.prompt_length - 1, pair.student.prompt_length - 1)
            assert pair.early()[0] == ends_of_prompts
            marks = pair.student.tokens[: pair.student.prompt_length]
            lost = [
                example.prompt.encode()[slice(*pair.student_ends.spelled(token))].decode()
                for token, group in enumerate(pair.alignment.second[: len(marks)])
                if group == BUCKET
            ]
            assert "<|begin|>" in "".join(lost)
            assert len("".join(lost)) < 80


def test_a_trace_that_was_cut_off_stays_open(tokenizers, space) -> None:
    example = examples_of(space)[0]
    ids = encode_trace(tokenizers["world"], example.reference, example.prompt)[:-4]
    trace = parse_trace(example, ids, tokenizers["world"], space, 9)
    pair = retokenise(trace, example, tokenizers["world"], tokenizers["trained"], space)
    assert trace.status == pair.student.status == "unfinished"
    assert pair.student.tokens[-1] != tokenizers["trained"].eos_token_id


def test_a_trace_that_trains_no_student_of_the_teachers_trains_none_here(tokenizers, space) -> None:
    example = examples_of(space)[0]
    trace = replace(traces_of([example], tokenizers["world"], space)[0], status="no clause")
    pair = retokenise(trace, example, tokenizers["world"], tokenizers["trained"], space)
    assert pair.student_trace().status == "no clause"


def test_special_tokens_within_a_trace_are_no_text(tokenizers, space) -> None:
    world, example = tokenizers["world"], examples_of(space)[0]
    ids = encode_trace(world, example.reference, example.prompt)
    ids = [*ids[:3], world.unk_token_id, *ids[3:]]
    trace = parse_trace(example, ids, world, space, 9)
    pair = retokenise(trace, example, world, tokenizers["trained"], space)
    assert pair.student.text == example.reference
    assert pair.alignment.first[trace.prompt_length + 3] == BUCKET


def test_traces_of_other_examples_are_refused(tokenizers, space) -> None:
    first, second = examples_of(space)[:2]
    trace = traces_of([first], tokenizers["world"], space)[0]
    other = replace(second, prompt=f"{second.prompt} or")
    with pytest.raises(InputError, match="does not begin with that example's prompt"):
        retokenise(trace, other, tokenizers["world"], tokenizers["trained"], space)
    with pytest.raises(InputError, match=f"belongs to example {first.example}"):
        retokenise_all([trace], [second], tokenizers["world"], tokenizers["trained"], space)


def test_room_for_the_longest_trace_is_asked_for(pairs) -> None:
    of = pairs["world", "trained"]
    longest = max(len(p.student.tokens) - p.student.prompt_length for p in of)
    require_room(of, longest)
    with pytest.raises(InputError, match=rf"{longest} tokens.*max_new_tokens is {longest - 1}"):
        require_room(of, longest - 1)


def test_the_teacher_is_read_at_what_the_student_trains_on(pairs) -> None:
    for pair in pairs["chat", "trained"]:
        sequence = pair.teacher_sequence()
        own = whole_trace(pair.student_trace())
        assert len(sequence.early) == len(own.early)
        assert len(sequence.refine) == len(own.refine)
        assert len(sequence.groups) == len(sequence.tokens)
        rows = torch.eye(len(sequence.tokens))[list(sequence.early)]
        # the key of a position itself lies in the group up to which its row is visible
        assert rows.argmax(-1).tolist() == list(sequence.early)


def test_equal_texts_give_an_equal_tokenizer(texts) -> None:
    one, two = (train_byte_level_bpe(texts, 600) for _ in range(2))
    assert one.backend_tokenizer.to_str() == two.backend_tokenizer.to_str()
    assert len(one) == 600
    assert one("heart").input_ids[0] == one.bos_token_id
    assert decode_trace(one, one("naïve 日本 🩺").input_ids) == "naïve 日本 🩺"

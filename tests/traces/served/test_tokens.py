"""Which tokens an answer is: certain, or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechdistill.errors import InputError
from mechdistill.traces.served.server import Answer, Prompt
from mechdistill.traces.served.tokens import agreement, answer_tokens
from tests.small_tokenizers import byte_fallback, byte_level, unigram

from .conftest import greedy_ids, tiny

TEXTS = ["the heart failure is acute , not chronic .", "gout ; asthma . migraine"] * 3
WROTE = " the heart failure is acute ."
PROMPT = Prompt("n1", "the", (1, 5))


@pytest.fixture(params=[byte_level, byte_fallback, unigram])
def words(request):
    return request.param(TEXTS)


def said(text: str, written: int, *, ended: bool = True) -> Answer:
    return Answer(text, ended, 2, written, None, None, None)


def ids_of(words, text: str = WROTE) -> list[int]:
    return words(text, add_special_tokens=False)["input_ids"]


def spelled(words, ids) -> str:
    return words.decode(ids, skip_special_tokens=True)


def test_text_is_read_back_as_the_tokens_that_were_written(words):
    ids = ids_of(words)
    answer = said(spelled(words, ids), len(ids) + 1)
    assert answer_tokens(answer, PROMPT, words, 99) == [*ids, words.eos_token_id]


def test_a_text_cut_at_the_limit_has_no_end(words):
    ids = ids_of(words)
    answer = said(spelled(words, ids), len(ids), ended=False)
    assert answer_tokens(answer, PROMPT, words, len(ids)) == ids


def test_a_text_of_another_number_of_tokens_is_refused(words):
    ids = ids_of(words)
    for written in (len(ids), len(ids) + 2):
        with pytest.raises(InputError, match=f"note n1: the server wrote {written} tokens"):
            answer_tokens(said(spelled(words, ids), written), PROMPT, words, 99)


def test_given_ids_count_even_where_the_tokenizer_would_choose_others(words):
    pieces = [token for letter in WROTE.split() for token in ids_of(words, letter)]
    ids = [*pieces, words.eos_token_id]
    answer = replace(said(spelled(words, ids), len(ids)), ids=tuple(ids), read=PROMPT.ids)
    assert answer_tokens(answer, PROMPT, words, 99) == ids


def test_an_end_that_the_server_leaves_out_is_added(words):
    ids = ids_of(words)
    answer = replace(said(spelled(words, ids), len(ids)), ids=tuple(ids))
    assert answer_tokens(answer, PROMPT, words, 99) == [*ids, words.eos_token_id]


def test_what_follows_the_end_is_dropped(words):
    ids = [*ids_of(words), words.eos_token_id]
    answer = replace(said(spelled(words, ids), 99), ids=(*ids, *ids))
    assert answer_tokens(answer, PROMPT, words, 99) == ids


def test_ids_of_another_tokenizer_are_refused(words):
    ids = ids_of(words)
    answer = replace(said("something else", len(ids)), ids=tuple(ids))
    with pytest.raises(InputError, match="is not what the tokenizer makes of its"):
        answer_tokens(answer, PROMPT, words, 99)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"read_count": 3}, "reads its prompt as 3 tokens, the study's tokenizer as 2"),
        ({"read": (1, 6), "ids": (1,)}, "read other tokens than were sent"),
    ],
)
def test_another_reading_of_the_prompt_is_refused(words, change, message):
    ids = ids_of(words)
    answer = replace(said(spelled(words, ids), len(ids) + 1), **change)
    with pytest.raises(InputError, match=message):
        answer_tokens(answer, PROMPT, words, 99)


def test_a_model_agrees_with_itself_and_not_with_another(model, tokenizer, prompts, own):
    other = tiny(tokenizer, seed=2)
    for prompt, ids in zip(prompts[:4], own):
        assert agreement(model, prompt.ids, ids) == 1.0
        theirs = greedy_ids(other, tokenizer, [list(prompt.ids)])[0]
        assert agreement(model, prompt.ids, theirs) < 0.5

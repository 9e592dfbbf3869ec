"""Ends of tokens in bytes, against what the vocabularies' own strings say."""

import re
import unicodedata
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from transformers.convert_slow_tokenizer import bytes_to_unicode

from mechdistill.data.token_ends import (
    INSIDE,
    TokenEnds,
    ends_in_text,
    ends_of_ids,
    joined,
)
from mechdistill.data.tokenizer import decode_trace
from mechdistill.errors import InputError
from tests.small_tokenizers import BEGIN, END, byte_fallback, byte_level, normalising, unigram

TEXTS = ["I50.21 acute heart failure (a) or naïve 日本 , => not .", "#1 heart failure . Review: #2"]
KINDS = {"byte_level": byte_level, "byte_fallback": byte_fallback, "unigram": unigram}
TOKENIZERS = {name: build(TEXTS * 3) for name, build in KINDS.items()}

any_text = st.text(
    st.sampled_from("abI5. ,()#\n\té\u0301ïß日本語🩺\u200d")
    | st.characters(codec="utf-8", exclude_categories="C"),
    max_size=25,
)


def bytes_of(piece: str) -> bytes:
    """What a token stands for: byte-level pieces by GPT-2's table, others as they are written."""
    if byte := re.fullmatch("<0x(..)>", piece):
        return bytes([int(byte[1], 16)])
    return piece.replace("▁", " ").encode()


@given(text=any_text)
@hypothesis_settings(max_examples=150)
def test_byte_level_tokens_end_where_their_bytes_do(text) -> None:
    tokenizer = TOKENIZERS["byte_level"]
    table = {character: byte for byte, character in bytes_to_unicode().items()}
    pieces = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).tokens
    found = ends_in_text(tokenizer, text, add_special_tokens=False)
    written = b""
    for piece, end in zip(pieces, found.ends, strict=True):
        written += bytes(table[character] for character in piece)
        assert end == len(written)
    assert found.size == len(written)


@given(text=any_text)
@hypothesis_settings(max_examples=150)
def test_tokens_with_byte_fallback_end_where_their_bytes_do(text) -> None:
    tokenizer = TOKENIZERS["byte_fallback"]
    pieces = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).tokens
    found = ends_in_text(tokenizer, text, add_special_tokens=False)
    written = b""
    for piece, end in zip(pieces, found.ends, strict=True):
        written += bytes_of(piece)
        assert end == len(written)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=any_text)
@hypothesis_settings(max_examples=100)
def test_ends_lead_through_the_whole_text(name, text) -> None:
    found = ends_in_text(TOKENIZERS[name], text, add_special_tokens=True)
    known = [end for end in found.ends if end != INSIDE]
    assert found.size == len(text.encode())
    assert known == sorted(known)
    assert all(0 <= end <= found.size for end in known)
    if text.strip():
        assert max(known) >= len(text.rstrip().encode())


@pytest.mark.parametrize("name", ["byte_level", "byte_fallback"])
@given(text=any_text)
@hypothesis_settings(max_examples=100)
def test_written_ids_end_where_the_same_ids_of_a_text_do(name, text) -> None:
    tokenizer, text = TOKENIZERS[name], text.strip()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    spelled, ends = ends_of_ids(tokenizer, ids)
    assert spelled == text
    assert ends == ends_in_text(tokenizer, text, add_special_tokens=False)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(data=st.data())
@hypothesis_settings(max_examples=100)
def test_any_ids_have_ends_in_the_text_of_a_trace(name, data) -> None:
    """Half characters, special tokens in between, pieces that no encoding would put together."""
    tokenizer = TOKENIZERS[name]
    ids = data.draw(st.lists(st.integers(0, len(tokenizer) - 1), max_size=20))
    text, found = ends_of_ids(tokenizer, ids)
    known = [end for end in found.ends if end != INSIDE]
    assert len(found) == len(ids)
    assert known == sorted(known)
    assert found.size == len(text.encode())
    assert not text or max(known) == found.size
    for token, special in zip(ids, found.special, strict=True):
        assert special == (token in tokenizer.all_special_ids)
    if "\ufffd" not in text:
        assert text == decode_trace(tokenizer, ids)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC"])
@given(text=any_text)
@hypothesis_settings(max_examples=60)
def test_a_normaliser_moves_no_end_out_of_the_text_as_it_was_given(form, text) -> None:
    tokenizer = normalising(TOKENIZERS["byte_level"], form)
    found = ends_in_text(tokenizer, text, add_special_tokens=False)
    known = [end for end in found.ends if end != INSIDE]
    assert known == sorted(known)
    at = {len(text[:index].encode()) for index in range(len(text) + 1)}
    if unicodedata.normalize(form, text) != text:
        inside = [end for end in known if end not in at]
        for end in inside:  # only of characters that the normaliser left as they were
            start = max(place for place in at if place < end)
            character = text.encode()[start:].decode()[0]
            assert unicodedata.normalize(form, character) == character
    else:
        assert found == ends_in_text(TOKENIZERS["byte_level"], text, add_special_tokens=False)


def test_a_composed_character_has_no_end_inside() -> None:
    """Of its own two bytes none is one of the three in the text."""
    tokenizer = normalising(byte_level(["ab"]), "NFC")
    found = ends_in_text(tokenizer, "ae\u0301b", add_special_tokens=False)
    assert found.ends == (1, INSIDE, 4, 5)
    assert [found.spelled(token) for token in range(4)] == [(0, 1), (1, 4), (1, 4), (4, 5)]


def test_special_tokens_spell_what_the_text_says_of_them() -> None:
    tokenizer = TOKENIZERS["byte_level"]
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "heart"}], tokenize=False, add_generation_prompt=True
    )
    found = ends_in_text(tokenizer, prompt, add_special_tokens=False)
    special = [prompt.encode()[slice(*found.spelled(i))].decode() for i in range(len(found))]
    flagged = [text for text, flag in zip(special, found.special, strict=True) if flag]
    assert flagged == [BEGIN, END, BEGIN]
    text, written = ends_of_ids(tokenizer, tokenizer(prompt)["input_ids"])
    assert text.split() == ["user", "heart", "assistant"]
    assert all(
        written.spelled(i)[0] == written.spelled(i)[1] for i, s in enumerate(written.special) if s
    )


def test_white_space_belongs_to_the_token_behind_it(tokenizer) -> None:
    found = ends_in_text(tokenizer, "or  , \n since ", add_special_tokens=True)
    assert found.ends == (0, 2, 5, 13)
    assert found.spelled(2) == (2, 5)
    assert found.filled().ends == (0, 2, 5, 14)


def test_texts_behind_one_another_are_one_text() -> None:
    tokenizer = TOKENIZERS["byte_level"]
    parts = ["heart 🩺", " naïve"]
    whole = ends_in_text(tokenizer, "".join(parts), add_special_tokens=False)
    assert joined(ends_in_text(tokenizer, p, add_special_tokens=False) for p in parts) == whole
    inside = TokenEnds(4, (INSIDE, 4), (False, False))
    assert joined([inside, inside]).ends == (INSIDE, 4, INSIDE, 8)


def test_a_slow_tokenizer_is_refused() -> None:
    with pytest.raises(InputError, match="slow tokenizer"):
        ends_in_text(SimpleNamespace(is_fast=False), "heart", add_special_tokens=False)


@pytest.mark.parametrize(
    "offsets", [[(0, 0), (0, 0), (0, 0)], [(0, 0), (0, 5), (0, 0)]], ids=["all", "one"]
)
def test_offsets_that_name_no_place_are_refused(offsets) -> None:
    encoded = SimpleNamespace(ids=[9, 0, 1], tokens=["<s>", "heart", "fail"], offsets=offsets)
    stub = SimpleNamespace(
        is_fast=True,
        all_special_ids=[9],
        backend_tokenizer=SimpleNamespace(encode=lambda text, add_special_tokens: encoded),
    )
    with pytest.raises(InputError, match="no place in a text of 13 characters"):
        ends_in_text(stub, "heart failure", add_special_tokens=True)

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.token_spans import (
    continuation_spans,
    covering,
    decode,
    encode_continuation,
    token_spans,
)
from tests.small_tokenizers import byte_fallback, byte_level, unigram

TEXTS = ["I50.21 acute heart failure (a) or naïve 日本 , => not .", "#1 heart failure . Review: #2"]


@pytest.fixture(scope="module", params=["byte_level", "byte_fallback"])
def pieces(request):
    return {"byte_level": byte_level, "byte_fallback": byte_fallback}[request.param](TEXTS * 3)


any_text = st.text(
    st.sampled_from("abI5. ,()#\n\téïß日本語🩺")
    | st.characters(codec="utf-8", exclude_categories="C"),
    max_size=25,
)


@given(text=any_text)
@hypothesis_settings(max_examples=150)
def test_spans_are_those_that_the_tokenizer_gives_when_it_cuts_the_text(pieces, text) -> None:
    encoded = pieces.backend_tokenizer.encode(text, add_special_tokens=False)
    found, spans = token_spans(pieces, encoded.ids)
    assert found == text
    assert spans == [tuple(offset) for offset in encoded.offsets]


@given(data=st.data())
@hypothesis_settings(max_examples=150)
def test_spans_of_any_ids_run_through_their_text(pieces, data) -> None:
    """Ids that no encoding of a text would give: half characters, specials, repeated pieces."""
    ids = data.draw(st.lists(st.integers(0, len(pieces) - 1), max_size=20))
    text, spans = token_spans(pieces, ids)
    assert text == decode(pieces, ids)
    starts = [start for start, _ in spans]
    assert starts == sorted(starts)
    assert all(start <= end <= len(text) for start, end in spans)
    assert {p for start, end in spans for p in range(start, end)} == set(range(len(text)))
    for token, (start, end) in zip(ids, spans, strict=True):
        alone = decode(pieces, [token])
        if "\ufffd" not in alone and "\ufffd" not in text:
            assert text[start:end] == alone


def test_all_parts_of_a_character_hold_it(pieces) -> None:
    ids = pieces("🩺", add_special_tokens=False)["input_ids"]
    assert len(ids) == 4
    assert token_spans(pieces, ids) == ("🩺", [(0, 1)] * 4)
    cut_off = token_spans(pieces, ids[:2])[1]
    assert all(end > start for start, end in cut_off[:1])


def test_words_of_the_world_are_parted_by_spaces(tokenizer, space) -> None:
    words = ["#1", space.regions[0].name, ","]
    ids = tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
    text, spans = token_spans(tokenizer, [*ids, tokenizer.eos_token_id])
    assert [text[start:end].strip() for start, end in spans] == [*words, "<eos>"]


@given(first=any_text, rest=st.sampled_from([" heart failure", " I50.21 acute", " (a) or", "x"]))
@hypothesis_settings(max_examples=60)
def test_a_continuation_is_the_rest_of_the_whole_text(pieces, first, rest) -> None:
    whole = pieces(f"{first}\n{rest}", add_special_tokens=False)["input_ids"]
    assert tuple(whole[-len(encode_continuation(pieces, rest)) :]) == encode_continuation(
        pieces, rest
    )
    assert decode(pieces, encode_continuation(pieces, rest)) == rest


BEGINNINGS = ["", " ", "\n", "\n\n", "  ", "\t", "a", "日"]


@pytest.mark.parametrize("begin", BEGINNINGS)
@given(rest=any_text)
@hypothesis_settings(max_examples=25)
def test_spans_of_a_continuation_spell_it(pieces, begin, rest) -> None:
    """Whatever it begins with: some tokenizers merge white space with what stands before it."""
    text = begin + rest
    ids, spans = continuation_spans(pieces, text)
    assert decode(pieces, ids) == text
    assert {p for start, end in spans for p in range(start, end)} == set(range(len(text)))
    assert all(0 <= start < end for start, end in spans)


def test_a_continuation_is_not_the_start_of_a_word() -> None:
    """A tokenizer that puts a space before every text must not put one here."""
    tokenizer = unigram(TEXTS * 3)
    ids, spans = continuation_spans(tokenizer, "ute heart")
    assert decode(tokenizer, ids).strip() == "ute heart"
    assert spans[0][0] == 0
    assert not tokenizer.convert_ids_to_tokens(ids[0]).startswith("▁")


def test_covering_tokens_overlap_the_span() -> None:
    spans = [(0, 2), (2, 3), (2, 3), (3, 3), (3, 6)]
    assert covering(spans, (2, 4)) == (1, 2, 3, 4)
    assert covering(spans, (3, 3)) == ()

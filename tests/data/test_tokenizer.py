from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import (
    decode_trace,
    encode_prompt,
    encode_trace,
    load_tokenizer,
    save_tokenizer,
    stop_ids,
    vocabulary,
)
from mechdistill.errors import InputError
from tests.small_tokenizers import byte_level


def test_one_piece_is_one_token(cases, tokenizer) -> None:
    for _, _, case in cases:
        words = [piece.text for piece in case.pieces]
        ids = encode_prompt(tokenizer, case.prompt)
        assert tokenizer.convert_ids_to_tokens(ids) == ["<bos>", *words]
        trace = encode_trace(tokenizer, " ".join(case.reference))
        assert tokenizer.convert_ids_to_tokens(trace) == [*case.reference, "<eos>"]


@given(data=st.data())
@hypothesis_settings(max_examples=60, deadline=None)
def test_any_words_of_the_vocabulary_survive_the_round_trip(
    data: st.DataObject, space: LabelSpace, tokenizer
) -> None:
    words = data.draw(st.lists(st.sampled_from(vocabulary(space)[4:]), min_size=1, max_size=30))
    ids = tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
    assert decode_trace(tokenizer, ids) == " ".join(words)
    assert tokenizer.unk_token_id not in ids


def test_a_label_is_one_token_although_it_holds_its_region_and_cue(
    space: LabelSpace, tokenizer
) -> None:
    for label in space.labels:
        assert len(encode_trace(tokenizer, label.text)) == 2  # and <eos>


def test_unknown_words_become_unk(tokenizer) -> None:
    assert tokenizer("zebra", add_special_tokens=False)["input_ids"] == [tokenizer.unk_token_id]


def test_file_gives_the_same_tokenizer(tokenizer, examples: list[Example], tmp_path: Path) -> None:
    save_tokenizer(tmp_path / "tokenizer.json", tokenizer)
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    assert len(loaded) == len(tokenizer)
    for example in examples[:20]:
        assert encode_prompt(loaded, example.prompt) == encode_prompt(tokenizer, example.prompt)
    ids = (loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id)
    assert ids == (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id)


def test_roles_and_chat_template_of_another_tokenizer_survive_the_file(pieces, tmp_path) -> None:
    """Its padding is its end token."""
    save_tokenizer(tmp_path / "tokenizer.json", pieces)
    loaded = load_tokenizer(tmp_path / "tokenizer.json")
    for role in ("bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "chat_template"):
        assert getattr(loaded, role) == getattr(pieces, role)
    assert loaded.pad_token_id == loaded.eos_token_id
    assert loaded.all_special_ids == pieces.all_special_ids
    text = "#1 heart  failure naïve 日本\n."
    ids = encode_trace(loaded, text, "prompt:")
    assert ids == encode_trace(pieces, text, "prompt:")
    assert decode_trace(loaded, ids) == text


def test_a_tokenizer_without_padding_pads_with_its_end(tmp_path: Path) -> None:
    pieces = byte_level(["a note ."])
    pieces.pad_token = None
    save_tokenizer(tmp_path / "tokenizer.json", pieces)
    assert load_tokenizer(tmp_path / "tokenizer.json").pad_token == pieces.eos_token


def test_slow_and_endless_tokenizers_are_refused(tmp_path: Path) -> None:
    class Slow:
        is_fast = False

    with pytest.raises(InputError, match="slow tokenizer"):
        save_tokenizer(tmp_path / "tokenizer.json", Slow())
    endless = byte_level(["a note ."])
    endless.eos_token = None
    with pytest.raises(InputError, match="ends a text"):
        save_tokenizer(tmp_path / "tokenizer.json", endless)
    assert not list(tmp_path.iterdir())


def test_runs_stop_at_words_of_one_token(tokenizer, pieces) -> None:
    answer = tokenizer.get_vocab()["Answer:"]
    assert stop_ids(tokenizer, ["Answer:"]) == {tokenizer.eos_token_id, answer}
    assert stop_ids(pieces, ["Answer:"]) == {pieces.eos_token_id}


@pytest.mark.parametrize("content", [None, "{}", "no json"])
def test_missing_or_damaged_file_is_one_clear_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        load_tokenizer(path)

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from mechdistill.evaluate.token_text import token_texts, word_groups
from tests.small_tokenizers import byte_level


def test_a_token_of_several_words_is_its_text_and_a_special_one_is_empty(tokenizer):
    ids = tokenizer.encode("#1 heart failure , #2 asthma .", add_special_tokens=False)

    assert token_texts([*ids, tokenizer.eos_token_id], tokenizer) == [
        "#1",
        "heart failure",
        ",",
        "#2",
        "asthma",
        ".",
        "",
    ]


@pytest.fixture(scope="module")
def pieces():
    """A byte-level tokenizer that cuts "dyspnea" into three."""
    vocabulary = ["d", "y", "s", "p", "n", "e", "a", ",", "Ġ", "Ġd", "Ġdy", "sp", "ne", "nea"]
    merges = [("Ġ", "d"), ("Ġd", "y"), ("s", "p"), ("n", "e"), ("ne", "a")]
    raw = Tokenizer(models.BPE({token: i for i, token in enumerate(vocabulary)}, merges))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    raw.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=raw)


def test_each_piece_of_a_word_stands_for_the_word(pieces):
    ids = pieces.encode("dyspnea, dyspnea", add_special_tokens=False)

    assert len(ids) == 7
    assert token_texts(ids, pieces) == ["dyspnea"] * 3 + [","] + ["dyspnea"] * 3


def test_a_code_and_a_split_character_are_whole_words_too():
    pieces = byte_level(["x"])  # one byte a token

    ids = pieces.encode(" I50.21 日本, x-ray.", add_special_tokens=False)

    texts = token_texts(ids, pieces)
    assert len(texts) == 22
    assert texts[:7] == [""] + ["I50.21"] * 6
    assert texts[8:15] == ["日本"] * 6 + [","]
    assert texts[16:] == ["x-ray"] * 5 + ["."]


def test_groups_are_what_stands_between_white_space(tokenizer):
    pieces = byte_level(["heart failure"] * 9, size=300)
    text = "(a) heart failure ,  naïve.\nx"
    ids = pieces.encode(text, add_special_tokens=False)

    groups = word_groups(ids, pieces)
    assert [token for group in groups for token in group] == ids
    assert [pieces.decode(group).strip() for group in groups] == text.split()
    words = tokenizer.encode("#1 heart failure ,", add_special_tokens=False)
    assert word_groups(words, tokenizer) == [[word] for word in words]

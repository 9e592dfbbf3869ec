import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from mechdistill.evaluate.token_text import token_texts


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

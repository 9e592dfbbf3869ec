import numpy as np

from mechdistill.data.pretraining import base_texts


def test_base_texts_hold_no_reasoning_and_only_known_words(space, settings, tokenizer) -> None:
    texts = base_texts(space, settings, 60, np.random.default_rng(0))
    assert len(texts) == 60
    assert any(text.startswith("Glossary:") for text in texts)
    assert any(text.endswith("Reasoning:") for text in texts)
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.unk_token_id not in ids
        assert not {"Overview:", "Review:", "Answer:", "=>"} & set(text.split())


def test_base_texts_follow_the_generator(space, settings) -> None:
    first = base_texts(space, settings, 5, np.random.default_rng(3))
    assert base_texts(space, settings, 5, np.random.default_rng(3)) == first

"""The base student's objective and its texts."""

from __future__ import annotations

import torch

from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import load_tokenizer
from mechdistill.data.world import WorldSettings
from mechdistill.distil.base_student import LanguageModelling, stream
from tests.distil.conftest import PAD, Study, tiny_model


def test_loss_is_the_mean_over_all_tokens_of_the_texts_alone() -> None:
    texts = [[1, 5, 6, 7], [1, 8, 9, 10, 11, 12]]
    model = tiny_model(4)
    (part,), spent = LanguageModelling(model, lambda step: texts, PAD).step(0)
    terms = part()
    losses = []
    for text in texts:
        ids = torch.tensor([text])
        logits = model(ids).logits[0, :-1]
        losses.append(torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none"))
    torch.testing.assert_close(terms["nll"].value, torch.cat(losses).mean(), rtol=1e-4, atol=1e-4)
    assert (spent.target_tokens, spent.forward_tokens) == (8, 10)


def test_texts_are_a_function_of_seed_and_step(study: Study) -> None:
    space = read_label_space(study.folder / "label_space.json")
    tokenizer = load_tokenizer(study.folder / "tokenizer.json")
    world = {"regions": 5, "groups_in_context": 4, "problems_min": 1, "problems_max": 2}
    settings = WorldSettings.of(7, world)
    texts, again, other = (
        stream(space, settings, tokenizer, batch_size=4, seed=seed) for seed in (0, 0, 1)
    )
    assert texts(3) == again(3) != other(3)
    assert texts(4) != texts(3)

"""Greedy decoding against decoding without batch, padding or cache."""

from __future__ import annotations

import pytest
import torch

from mechdistill.models.generate import greedy, sampled


def slow(model, prompt, count, eos_id):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
        if tokens[-1] == eos_id:
            break
    return tokens[len(prompt) :]


PROMPTS = [[5, 6, 7, 8, 9, 10], [11], [12, 13, 14], [20, 21], [3] * 9]


@pytest.mark.parametrize("batch_size", [2, 5])
def test_greedy_equals_one_prompt_at_a_time(eager, tapped, batch_size):
    expected = [slow(eager, prompt, 12, -1) for prompt in PROMPTS]
    eos = expected[0][4]  # a token that really occurs, so that rows end at different steps
    expected = [slow(eager, prompt, 12, eos) for prompt in PROMPTS]
    found = greedy(
        tapped,
        PROMPTS,
        max_new_tokens=12,
        eos_id=eos,
        pad_id=0,
        batch_size=batch_size,
        what="test",
    )
    assert found == expected
    assert len({len(row) for row in found}) > 1


def draw(model, seed, temperature):
    settings = {"max_new_tokens": 8, "eos_id": -1, "pad_id": 0, "batch_size": 2, "what": "test"}
    return sampled(model, PROMPTS, temperature=temperature, seed=seed, **settings)


def test_samples_are_those_of_the_seed(tapped):
    assert draw(tapped, 1, 1.0) == draw(tapped, 1, 1.0)
    assert draw(tapped, 1, 1.0) != draw(tapped, 2, 1.0)


def test_a_cold_sample_is_the_greedy_text(eager, tapped):
    assert draw(tapped, 0, 1e-6) == [slow(eager, prompt, 8, -1) for prompt in PROMPTS]


def test_samples_follow_the_model_s_shares(tapped):
    """Of 2,000 draws of one token, each token has about its share."""
    with torch.no_grad():
        logits = tapped(torch.tensor([PROMPTS[0]])).logits[0, -1]
    shares = (logits / 2.0).softmax(-1)
    settings = {"max_new_tokens": 1, "eos_id": -1, "pad_id": 0, "batch_size": 2000, "what": "test"}
    drawn = sampled(tapped, [PROMPTS[0]] * 2000, temperature=2.0, seed=0, **settings)
    counts = torch.bincount(torch.tensor(drawn)[:, 0], minlength=len(shares))
    assert (counts / 2000 - shares).abs().max() < 0.05

"""Greedy decoding against decoding without batch, padding or cache."""

from __future__ import annotations

import pytest
import torch

from mechdistill.models.generate import greedy


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

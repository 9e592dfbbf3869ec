"""A tiny random model, and traces with decision events on random tokens."""

from __future__ import annotations

import pytest
import torch

from mechdistill.models.loading import build_model
from mechdistill.patching.pairs import Pair

from .made import HEADS, LAYERS, VOCABULARY, event, make_trace, random_tokens


@pytest.fixture(scope="session")
def model():
    torch.set_num_threads(1)
    built = build_model(
        {
            "family": "llama",
            "hidden_size": 32,
            "layers": LAYERS,
            "heads": HEADS,
            "kv_heads": 2,
            "intermediate_size": 48,
            "rope_theta": 100.0,
        },
        vocab_size=VOCABULARY,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        max_positions=128,
        seed=0,
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in built.parameters():  # the usual start leaves rows nearly uniform
            noise = torch.randn(weight.shape, generator=generator)
            weight.add_(noise * (0.3 if weight.ndim == 2 else 0.1))
    return built.eval()


@pytest.fixture
def pairs() -> list[Pair]:
    """Three pairs of unequal length with one to three events a phase."""
    traces = [
        make_trace(
            "a",
            9,
            12,
            [
                event("region", 10, 5, (6, 7)),
                event("within", 14, 8, (9,)),
                event("departure", 15, 3, (4,)),
                event("departure", 19, 3, (4,), "answer"),
            ],
            seed=1,
        ),
        make_trace(
            "b",
            14,
            11,
            [
                event("region", 14, 5, (6,)),
                event("region", 16, 11, (12, 13, 14)),
                event("within", 20, 8, (9,)),
            ],
            seed=2,
        ),
        make_trace("c", 11, 9, [event("within", 15, 20, (21,))], seed=3),
    ]
    return [Pair(t, "K1", random_tokens(t.prompt_length, 50 + i)) for i, t in enumerate(traces)]

"""Tiny random Llama in two copies: one behind the tap, one that transformers runs eagerly."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from mechdistill.models.batching import Batch, left_pad
from mechdistill.models.tap import attach

LENGTHS = (17, 23, 9)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def eager() -> LlamaForCausalLM:
    """Grouped queries 4:2, head width 12 (not hidden size / heads), output bias, sharp rows."""
    config = LlamaConfig(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=12,
        attention_bias=True,
        max_position_embeddings=128,
        pad_token_id=0,
        attn_implementation="eager",
    )
    torch.manual_seed(3)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for weight in model.parameters():  # transformers' own start leaves rows nearly uniform
            weight.add_(torch.randn_like(weight) * (0.3 if weight.ndim == 2 else 0.1))
    return model.eval()


@pytest.fixture
def tapped(eager: LlamaForCausalLM) -> LlamaForCausalLM:
    return attach(copy.deepcopy(eager))


def batch_of(lengths: tuple[int, ...], seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    return left_pad(
        [torch.randint(1, 61, (n,), generator=generator).tolist() for n in lengths], pad_id=0
    )


@pytest.fixture(params=["padded", "unpadded"])
def batch(request: pytest.FixtureRequest) -> Batch:
    return batch_of(LENGTHS if request.param == "padded" else (21, 21, 21))

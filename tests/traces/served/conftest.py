"""A tiny model of random weights that writes words of the small world, and ends now and then."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mechdistill.data.tokenizer import encode_prompt
from mechdistill.models.generate import greedy
from mechdistill.models.loading import build_model
from mechdistill.traces.served.server import Prompt

from .servers import Dialect

NEW = 24


def tiny(tokenizer: Any, seed: int) -> Any:
    """Writes single words alone, whose text can be read back as the same tokens."""
    shape = {"family": "llama", "hidden_size": 32, "layers": 2, "heads": 4, "kv_heads": 2}
    model = build_model(
        shape | {"head_dim": 8, "intermediate_size": 48, "rope_theta": 1e3},
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=512,
        seed=seed,
    )
    kept = {tokenizer.eos_token_id}
    kept |= {i for t, i in tokenizer.get_vocab().items() if " " not in t and t[0] != "<"}
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():  # at the usual start rows are nearly uniform
            weight += 0.3 * torch.randn(weight.shape, generator=generator)
        head = model.lm_head.weight
        head[[i for i in range(len(head)) if i not in kept]] = 0.0
    return model.eval()


@pytest.fixture(scope="session")
def model(tokenizer):
    return tiny(tokenizer, seed=1)


@pytest.fixture(scope="session")
def prompts(tokenizer, examples) -> list[Prompt]:
    return [
        Prompt(e.example, e.prompt, tuple(encode_prompt(tokenizer, e.prompt)))
        for e in examples[:12]
    ]


def greedy_ids(model, tokenizer, prompts: list[list[int]], new: int = NEW) -> list[list[int]]:
    return greedy(
        model,
        prompts,
        max_new_tokens=new,
        eos_id=tokenizer.eos_token_id,
        pad_id=tokenizer.pad_token_id,
        batch_size=16,
        what="oracle",
    )


@pytest.fixture(scope="session")
def own(model, tokenizer, prompts) -> list[list[int]]:
    """What the model writes in this process."""
    written = greedy_ids(model, tokenizer, [list(prompt.ids) for prompt in prompts])
    ends = [ids[-1] == tokenizer.eos_token_id for ids in written]
    assert any(ends) and not all(ends)  # both kinds of end are tested
    return written


@pytest.fixture
def dialect(tokenizer, prompts, own) -> Dialect:
    """Knows what the model writes."""
    known = {prompt.ids: ids for prompt, ids in zip(prompts, own)}
    return Dialect(
        write=lambda ids, new: known[tuple(ids)],
        spell=lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
        eos=tokenizer.eos_token_id,
    )

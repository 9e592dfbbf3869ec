"""A small label space, its tokenizer, a random model and traces in the world's format."""

from __future__ import annotations

import pytest
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import draw_cases, example_of
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import build_tokenizer, encode_trace
from mechdistill.data.world import WorldSettings
from mechdistill.models.loading import build_model
from mechdistill.traces.parse import parse_trace
from tests.small_space import small_space


@pytest.fixture(scope="session")
def space() -> LabelSpace:
    return small_space()


@pytest.fixture(scope="session")
def tokenizer(space) -> PreTrainedTokenizerFast:
    return build_tokenizer(space)


@pytest.fixture(scope="session")
def examples(space):
    settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
    cases = draw_cases(space, settings, {"ranking": 10}, seed=0)
    return [example_of(case, name, split) for name, split, case in cases]


@pytest.fixture(scope="session")
def traces(examples, space, tokenizer):
    """The templated reasoning as if a model had written it."""
    return [
        parse_trace(e, encode_trace(tokenizer, e.reference), tokenizer, space, early_tokens=12)
        for e in examples
    ]


@pytest.fixture(scope="session")
def architecture():
    """Grouped queries (two query heads a key head), three layers."""
    return {
        "family": "llama",
        "hidden_size": 32,
        "layers": 3,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 12,  # not hidden size / heads, as in some families
        "intermediate_size": 48,
        "rope_theta": 100.0,
    }


@pytest.fixture(scope="session")
def model(tokenizer, architecture):
    """Random weights."""
    model = build_model(
        architecture,
        vocab_size=len(tokenizer),
        pad_id=tokenizer.pad_token_id,
        bos_id=tokenizer.bos_token_id,
        eos_id=tokenizer.eos_token_id,
        max_positions=256,
        seed=0,
    ).eval()
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1:  # sharp rows, so that every variant has something to measure
            parameter.data *= 16 if "q_proj" in name or "k_proj" in name else 4
    return model

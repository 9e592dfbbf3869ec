"""A model is given back as it was, whatever happened to it."""

from __future__ import annotations

import copy

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from mechdistill.errors import InputError
from mechdistill.models.families import family_of
from mechdistill.models.lending import check_model, check_tokenizer, lent
from mechdistill.models.tap import IMPLEMENTATION
from tests.models.tiny import eager_model
from tests.small_tokenizers import byte_level


def state(model):
    """All that a loan may touch."""
    return {
        "implementation": model.config._attn_implementation,
        "configurations": [id(getattr(module, "config", None)) for module in model.modules()],
        "configuration": model.config.to_dict(),
        "modes": {name: module.training for name, module in model.named_modules()},
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()],
        "weights": [parameter._version for parameter in model.parameters()],
        "wanted": [parameter.requires_grad for parameter in model.parameters()],
    }


@pytest.fixture
def odd(eager):
    """In training mode but for one layer, with a frozen weight and a gradient."""
    eager.train()
    family_of(eager).blocks(eager)[1].eval()
    first, second, *_ = eager.parameters()
    first.requires_grad_(False)
    second.grad = torch.ones_like(second)
    return eager


@pytest.mark.parametrize("ends", ["well", "in an error", "interrupted"])
def test_model_is_given_back_as_it_was(odd, ends):
    before, gradient = state(odd), list(odd.parameters())[1].grad
    error = {"in an error": ZeroDivisionError, "interrupted": KeyboardInterrupt}.get(ends)
    try:
        with lent(odd) as tapped:
            assert tapped is odd
            assert odd.config._attn_implementation == IMPLEMENTATION
            assert not any(module.training for module in odd.modules())
            assert not torch.is_grad_enabled()
            if error:
                raise error
    except (ZeroDivisionError, KeyboardInterrupt):
        assert error
    assert state(odd) == before
    assert list(odd.parameters())[1].grad is gradient
    assert (gradient == 1).all()


def test_a_model_that_shares_its_configuration_keeps_its_attention(eager):
    twin = copy.deepcopy(eager)
    for module in twin.modules():
        if hasattr(module, "config"):
            module.config = eager.config
    with lent(eager):
        assert twin.config._attn_implementation == "eager"
    assert eager.config is twin.config


@pytest.mark.parametrize("caller", [torch.no_grad, torch.inference_mode])
def test_gradients_can_be_had_within_whatever_the_caller_switched_off(eager, caller):
    with caller(), lent(eager) as tapped, torch.enable_grad():
        logits = tapped(torch.tensor([[1, 2, 3, 4]])).logits
        gradients = torch.autograd.grad(logits.sum(), list(tapped.parameters())[:2])
    assert all(gradient.abs().sum() > 0 for gradient in gradients)


def test_a_loan_within_a_loan_ends_with_the_outer_one(eager):
    before = state(eager)
    with lent(eager):
        with lent(eager):
            pass
        assert eager.config._attn_implementation == IMPLEMENTATION
    assert state(eager) == before


def test_what_is_no_model_of_a_known_family_is_refused():
    with pytest.raises(InputError, match=r"(?s)a Linear is no model.*from_pretrained"):
        check_model(torch.nn.Linear(2, 2))
    with pytest.raises(InputError, match=r"(?s)gpt2.*families"):
        check_model(GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9)))


def test_model_on_several_devices_is_refused():
    model = eager_model("llama")
    model.lm_head.to("meta")
    with pytest.raises(InputError, match=r"2 devices \(cpu, meta\)"):
        check_model(model)


def test_tokenizer_must_be_fast_and_of_the_model():
    model = eager_model("llama")
    with pytest.raises(InputError, match="slow tokenizer"):
        check_tokenizer(object(), model)
    with pytest.raises(InputError, match="has 260 tokens, the model 61"):
        check_tokenizer(byte_level(["a b c"], size=300), model)

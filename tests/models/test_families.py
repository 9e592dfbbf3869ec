"""Adapters: what they refuse, what they build, and the page that shows how to write one."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    DynamicCache,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaModel,
    SiglipVisionConfig,
)
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from mechdistill.errors import InputError
from mechdistill.models import families
from mechdistill.models.loading import build_model, load_model, save_model
from mechdistill.models.pretraining import Text, summed_trace_loss
from mechdistill.models.tap import IMPLEMENTATION, Tap, attach, head_writes, pooled_write
from mechdistill.models.upper_layers import copy_of_layers
from tests.models.tiny import HEADS, LAYERS, MAKERS, eager_model, window

PAGE = Path(__file__).parents[2] / "docs" / "families.md"
ARCHITECTURE = {
    "hidden_size": 32,
    "layers": 3,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 12,
    "intermediate_size": 48,
    "rope_theta": 100.0,
    "sliding_window": 8,
    "full_attention_every": 3,
    "sliding_rope_theta": 10.0,
}


def built(family, **changes):
    tokens = {"vocab_size": 61, "pad_id": 0, "bos_id": 1, "eos_id": 2}
    return build_model(
        {"family": family, **ARCHITECTURE, **changes}, **tokens, max_positions=64, seed=0
    )


@pytest.mark.parametrize("family", list(families.FAMILIES))
def test_a_section_of_the_parameters_gives_a_model_that_comes_back(family, tmp_path):
    model = built(family).eval()
    config = model.config
    assert config.model_type == family
    assert (config.num_hidden_layers, config.head_dim, config.num_key_value_heads) == (3, 12, 2)
    if family != "llama":
        kinds = ["sliding_attention", "sliding_attention", "full_attention"]
        assert (config.layer_types, config.sliding_window) == (kinds, 8)
    save_model(model, tmp_path / "w.safetensors", tmp_path / "c.json")
    loaded = load_model(tmp_path / "w.safetensors", tmp_path / "c.json")
    ids = torch.arange(3, 23)[None]
    assert torch.equal(loaded(ids).logits, model(ids).logits)


@pytest.mark.parametrize("family", [name for name in families.FAMILIES if name != "llama"])
def test_windows_are_a_choice(family):
    model = built(family, sliding_window=None)
    assert set(model.config.layer_types) == {"full_attention"}
    tap = Tap(torch.tensor([[19]]))
    model(torch.arange(3, 23)[None], tap=tap)
    assert all(record.visible.all() for record in tap.record.values())


def test_unknown_family_is_told_what_an_adapter_answers():
    config = GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=9, eos_token_id=0)
    with pytest.raises(InputError) as caught:
        attach(GPT2LMHeadModel(config))
    assert "'gpt2' is not known" in caught.value.what
    for part in ("output_projection", "final_norm", "rotation", "masks", "docs/families.md"):
        assert part in caught.value.remedy


def small(config_class, **settings):
    return config_class(
        vocab_size=30,
        hidden_size=16,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        **settings,
    )


def test_model_without_read_out_is_refused():
    with pytest.raises(InputError, match=r"LlamaModel has not the parts.*no unembedding"):
        attach(LlamaModel(small(LlamaConfig)))


def test_model_that_sees_later_tokens_is_refused():
    with pytest.raises(InputError, match="attends to later tokens"):
        attach(eager_model("gemma3_text", use_bidirectional_attention=True))


def wrapper():
    vision = SiglipVisionConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=28,
        patch_size=14,
    )
    text = small(MAKERS["gemma3_text"][1], head_dim=8)
    config = Gemma3Config(
        text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_index=29
    )
    return Gemma3ForConditionalGeneration(config).eval()


def test_wrapper_of_a_text_model_is_told_from_the_text_model():
    model = wrapper()
    with pytest.raises(InputError, match="'gemma3_text' is the text model"):
        attach(model)
    ids = torch.arange(3, 20)[None]
    expected = model(ids).logits
    scope = {"wrapper": model}
    exec(code_blocks()[1], scope)
    torch.testing.assert_close(attach(scope["text"].eval())(ids).logits, expected)


def code_blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_page_s_adapter_works(monkeypatch):
    code = code_blocks()[0]
    assert len(code.splitlines()) < 60
    monkeypatch.setattr(families, "FAMILIES", dict(families.FAMILIES))
    exec(code, {"__name__": "page"})
    model = built("mistral").eval()
    ids = torch.arange(3, 23)[None]
    tap = Tap(torch.tensor([[19, 4]]))
    logits = model(ids, tap=tap).logits
    model.set_attn_implementation("eager")
    expected = model(ids, output_attentions=True)
    torch.testing.assert_close(logits, expected.logits, atol=1e-5, rtol=1e-5)
    for layer, record in tap.record.items():
        rows = expected.attentions[layer][:, :, [19, 4]]
        torch.testing.assert_close(record.rows, rows, atol=1e-6, rtol=1e-5)
        assert record.rows[0, 0, 0].count_nonzero() == 8  # the window


def test_the_page_names_every_part():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{part}" in text for part in families.PARTS)


def test_adapter_without_some_part_is_refused():
    class Half:
        def blocks(self, model): ...

    with pytest.raises(InputError, match="'half' has no check, build"):
        families.register("half", Half())


def test_mask_function_is_registered_beside_the_attention(monkeypatch):
    """Without it transformers hands over no mask, and padding and windows are ignored."""
    assert IMPLEMENTATION in AttentionInterface._global_mapping
    assert IMPLEMENTATION in AttentionMaskInterface._global_mapping
    eager = eager_model("gemma3_text")
    tapped = attach(copy.deepcopy(eager))
    ids = torch.arange(3, 33)[None].repeat(2, 1)
    mask = torch.ones_like(ids)
    mask[0, :7] = 0
    expected = eager(ids, attention_mask=mask).logits[:, -1]
    torch.testing.assert_close(
        tapped(ids, attention_mask=mask).logits[:, -1], expected, atol=1e-5, rtol=1e-5
    )
    monkeypatch.delitem(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, IMPLEMENTATION)
    without = tapped(ids, attention_mask=mask).logits[:, -1]
    assert (without - expected).abs().amax(-1).min() > 0.01  # the trap, put back


@pytest.mark.parametrize("family", ["qwen3", "gemma3_text"])
def test_cache_that_drops_keys_is_refused(family):
    tapped = attach(eager_model(family))
    ids = torch.arange(3, 33)[None]
    kept, dropping = DynamicCache(), DynamicCache(config=tapped.config)
    for cache in (kept, dropping):
        tapped(ids[:, :20], cache=cache, use_cache=True)
    tap, whole = Tap(torch.tensor([[25]])), Tap(torch.tensor([[25]]))
    tapped(ids, tap=whole)
    tapped(ids[:, 20:], cache=kept, use_cache=True, tap=tap)
    for layer in range(LAYERS):
        assert tap.record[layer].rows.shape[-1] == 30
        found, expected = tap.record[layer].rows, whole.record[layer].rows
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="dropped keys beyond the sliding window"):
        tapped(ids[:, 20:], cache=dropping, use_cache=True, tap=Tap(torch.tensor([[25]])))


def test_gemma3_caps_no_attention_like_transformers():
    eager = eager_model("gemma3_text", attn_logit_softcapping=0.5, final_logit_softcapping=3.0)
    ids = torch.arange(3, 23)[None]
    expected = eager(ids).logits
    torch.testing.assert_close(attach(eager)(ids).logits, expected, atol=1e-5, rtol=1e-5)
    assert expected.abs().max() <= 3


class Wrapped(nn.Module):
    """An affine projection that shows neither weight nor bias, as sharded or quantised ones."""

    def __init__(self, inner):
        super().__init__()
        self._inner = [inner]

    def forward(self, x):
        return self._inner[0](x)


@pytest.mark.parametrize("family", list(MAKERS))
def test_output_projection_is_called_and_never_sliced(family):
    tapped = attach(eager_model(family))
    tap = Tap(torch.tensor([[25, 4]]))
    tapped(torch.arange(3, 33)[None], tap=tap)
    mixed, weights = tap.record[1].mixed, torch.rand(HEADS)
    writes, pooled = head_writes(tapped, 1, mixed), pooled_write(tapped, 1, mixed, weights)
    block = tapped.model.layers[1].self_attn
    block.o_proj = Wrapped(block.o_proj)
    torch.testing.assert_close(head_writes(tapped, 1, mixed), writes)
    torch.testing.assert_close(pooled_write(tapped, 1, mixed, weights), pooled)
    assert window(tapped.config, 1) is None


@pytest.mark.parametrize("family", list(MAKERS))
def test_copied_upper_layers_do_what_they_did_in_the_model(family):
    model = eager_model(family)
    ids = torch.arange(3, 33)[None]
    hidden = model(ids, output_hidden_states=True).hidden_states
    copied = copy_of_layers(model, 1, 2).eval()
    found = copied(hidden[1], torch.ones_like(ids))
    torch.testing.assert_close(found, hidden[-1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", list(MAKERS))
def test_loss_of_a_trace_is_that_of_the_model_s_own_logits(family):
    """Also where logits are capped."""
    model = eager_model(family)
    text = Text(prompt=[5, 6, 7], trace=[8, 9, 2])
    logits = model(torch.tensor([[*text.prompt, *text.trace]])).logits[0]
    expected = nn.functional.cross_entropy(logits[2:5], torch.tensor(text.trace), reduction="sum")
    torch.testing.assert_close(summed_trace_loss(model, [text]), expected, atol=1e-5, rtol=1e-5)

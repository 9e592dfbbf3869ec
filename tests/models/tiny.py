"""Tiny random models of every family, and their attention written out without transformers' code.

All have grouped queries 4:2, head width 12 (not hidden size / heads), biased projections and sharp
rows; where a family has windows, its first and last layer see 8 keys and the middle one all. They
cap hard, so that a forgotten cap is seen.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

LAYERS, HEADS, GROUPS, WIDTH, SIZE, VOCABULARY, WINDOW = 3, 4, 2, 12, 32, 61, 8

COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": SIZE,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "head_dim": WIDTH,
    "attention_bias": True,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "attn_implementation": "eager",
}
WINDOWS = {
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}
GEMMA = {**COMMON, **WINDOWS, "query_pre_attn_scalar": 20, "tie_word_embeddings": False}
MAKERS = {
    "llama": (LlamaForCausalLM, LlamaConfig, COMMON),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, {**COMMON, **WINDOWS, "use_sliding_window": True}),
    "gemma2": (
        Gemma2ForCausalLM,
        Gemma2Config,
        {**GEMMA, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
    ),
    "gemma3_text": (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        {
            **GEMMA,
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 1e4},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e2},
            },
        },
    ),
}


def eager_model(family: str, **changes):
    """A model that transformers runs eagerly, in evaluation mode."""
    model_class, config_class, settings = MAKERS[family]
    torch.manual_seed(3)
    model = model_class(config_class(**{**settings, **changes}))
    with torch.no_grad():
        for weight in model.parameters():  # transformers' own start leaves rows nearly uniform
            weight.add_(torch.randn_like(weight) * (0.3 if weight.ndim == 2 else 0.1))
    return model.eval()


def is_gemma(config) -> bool:
    return config.model_type.startswith("gemma")


def window(config, layer: int) -> int | None:
    types = getattr(config, "layer_types", None)
    return WINDOW if types and types[layer] == "sliding_attention" else None


def visible_keys(config, layer: int, start: int, query: int, keys: int) -> Tensor:
    """Which of the keys a query sees: not the padding before `start`, not beyond the window."""
    first = start if window(config, layer) is None else max(start, query - WINDOW + 1)
    at = torch.arange(keys)
    return (at >= first) & (at <= query)


def rms_factor(x: Tensor, norm, config) -> Tensor:
    """f of an RMS norm's f x: g / sqrt(mean(x^2) + eps), where Gemma stores g - 1."""
    gain = 1 + norm.weight if is_gemma(config) else norm.weight
    return gain / (x.pow(2).mean(-1, keepdim=True) + config.rms_norm_eps).sqrt()


def before_rotary(attention, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys, values [B, heads, T, D] of the attention block's input [B, T, d]."""
    q, k, v = (
        projection(hidden).unflatten(-1, (-1, WIDTH)).transpose(1, 2)
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    config = attention.config
    if config.model_type in ("qwen3", "gemma3_text"):
        q = q * rms_factor(q, attention.q_norm, config)
        k = k * rms_factor(k, attention.k_norm, config)
    return q, k, v


def rotary(config, layer: int, x: Tensor) -> Tensor:
    """Positions 0, 1, ...: pairs (i, i + D/2) turn by position * theta^(-2i/D)."""
    settings = config.rope_parameters
    if "rope_theta" not in settings:
        settings = settings[config.layer_types[layer]]
    rates = settings["rope_theta"] ** (-torch.arange(0, WIDTH, 2) / WIDTH)
    angles = torch.arange(x.shape[2])[:, None] * rates
    first, second = x.chunk(2, dim=-1)
    return torch.cat(
        [
            first * angles.cos() - second * angles.sin(),
            second * angles.cos() + first * angles.sin(),
        ],
        -1,
    )


def row_logits(config, q: Tensor, k: Tensor) -> Tensor:
    """Logits [T, K] of one head's queries and keys, before any mask."""
    logits = q @ k.T / (config.query_pre_attn_scalar if is_gemma(config) else WIDTH) ** 0.5
    cap = 2.0 if config.model_type == "gemma2" else None
    return logits if cap is None else cap * torch.tanh(logits / cap)


def inputs_and_outputs(model, batch, name: str):
    """What enters and leaves a submodule of every layer, by hooks: layer -> (args, output)."""
    seen = {}
    hooks = [
        layer.get_submodule(name).register_forward_hook(
            lambda m, args, out, index=index: seen.__setitem__(index, (args, out))
        )
        for index, layer in enumerate(model.model.layers)
    ]
    model(batch.ids, attention_mask=batch.mask)
    for hook in hooks:
        hook.remove()
    return seen


def added_by_attention(model, batch) -> dict[int, Tensor]:
    """What each layer's attention block adds to the residual stream [B, T, d]."""
    if is_gemma(model.config):
        seen = inputs_and_outputs(model, batch, "post_attention_layernorm")
        return {layer: output for layer, (_, output) in seen.items()}
    seen = inputs_and_outputs(model, batch, "self_attn")
    return {layer: output[0] for layer, (_, output) in seen.items()}

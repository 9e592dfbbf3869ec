"""The model and the trace that the benchmarks work on: made up, but of real shape.

Costs do not depend on what weights and tokens say. Queries and keys are scaled up so that rows are
about as peaked as a trained model's, and a wrong row would show in the scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MODELS = {
    "tiny": {"layers": 2, "heads": 4, "hidden_size": 32, "intermediate_size": 64},
    "embedded": {"layers": 4, "heads": 8, "hidden_size": 128, "intermediate_size": 128},
    "small": {"layers": 12, "heads": 12, "hidden_size": 384, "intermediate_size": 1024},
}
"""`embedded` has the widths of the embedded study's teacher, `small` those of a 21 M model."""
VOCABULARY = 512
SHARPNESS = 4.0
EARLY, REFINE, MENTIONS = 15, 15, 8
"""30 query positions, and the mentions whose keys they are compared with."""


@dataclass(frozen=True)
class MadeUp:
    """A prompt and a trace of the last quarter of its tokens, at most 64."""

    ids: tuple[int, ...]
    prompt_length: int
    early: tuple[int, ...]
    refine: tuple[int, ...]
    mentions: tuple[int, ...]
    """Even ones are kept, odd ones rejected; all lie before the refinement positions."""
    anchors: tuple[int, ...]
    """Token ids whose read-out is the anchor."""
    target: int
    foil: int

    @property
    def shortlist(self) -> tuple[int, ...]:
        return self.mentions[::2]

    @property
    def near_miss(self) -> tuple[int, ...]:
        return self.mentions[1::2]


def made_up_trace(tokens: int, seed: int = 0) -> MadeUp:
    """A trace of that many tokens, prompt included (32 at least)."""
    rng = np.random.default_rng(seed)
    trace = min(64, tokens // 4 * 2)
    start = tokens - trace
    early, refine = min(EARLY, trace // 4), min(REFINE, trace // 4)
    middle = start + early
    return MadeUp(
        ids=tuple(int(i) for i in rng.integers(8, VOCABULARY, tokens)),
        prompt_length=start,
        early=tuple(range(start, start + early)),
        refine=tuple(range(tokens - 1 - refine, tokens - 1)),
        mentions=tuple(int(i) for i in np.linspace(start // 2, middle, MENTIONS).astype(int)),
        anchors=(9, 10, 11),
        target=12,
        foil=13,
    )


def made_up_model(
    name: str, attention: str, *, changes: Mapping[str, int] | None = None, seed: int = 0
) -> Any:
    """A Llama in evaluation mode, the same weights in every process.

    Args:
        attention: "sdpa", "eager" or "tapped".
        changes: of the shape; `head_dim` keeps heads as wide when their number changes.
    """
    import torch  # not needed to plan the cases
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = MODELS[name] | dict(changes or {})
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape["hidden_size"],
        intermediate_size=shape["intermediate_size"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["heads"],
        head_dim=shape.get("head_dim", shape["hidden_size"] // shape["heads"]),
        max_position_embeddings=16384,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        tie_word_embeddings=False,
        attn_implementation="sdpa" if attention == "tapped" else attention,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight *= SHARPNESS
            layer.self_attn.k_proj.weight *= SHARPNESS
    model.requires_grad_(False)
    if attention != "tapped":
        return model
    from mechdistill.models.tap import attach  # rivals do without

    return attach(model)


def corrupted(ids: tuple[int, ...], share: float = 0.1, seed: int = 1) -> tuple[int, ...]:
    """The same prompt with some tokens replaced, the last quarter kept."""
    rng = np.random.default_rng(seed)
    changed = rng.random(len(ids)) < share
    changed[len(ids) * 3 // 4 :] = False
    others = rng.integers(8, VOCABULARY, len(ids))
    return tuple(int(b if c else a) for a, b, c in zip(ids, others, changed))


def head_sets(model: str, conditions: int, share: float = 0.1, seed: int = 0) -> np.ndarray:
    """A tenth of the heads for each condition, drawn, bool [C, L, H]."""
    shape = MODELS[model]
    rng = np.random.default_rng(seed)
    drawn = rng.random((conditions, shape["layers"], shape["heads"]))
    return drawn <= np.quantile(drawn.reshape(conditions, -1), share, axis=1)[:, None, None]


def decision(model: Any, ids: tuple[int, ...]) -> tuple[int, int]:
    """Likeliest and unlikeliest next token: a decision that the model takes."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([ids]), use_cache=False, logits_to_keep=1).logits[0, -1]
    return int(logits.argmax()), int(logits.argmin())

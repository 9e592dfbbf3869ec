"""Qwen3: queries and keys are normed before the rotary embedding; layers may have a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from mechdistill.models.decoder import Decoder, layer_types, masks_by_type

OPTIONS = ("sliding_window", "full_attention_every")
"""Keys of an architecture that this family takes beside the common ones."""


class Qwen3(Decoder):
    """The norms come before the tap, which thus sees queries and keys as they enter the logits."""

    config_class = Qwen3Config
    model_class = Qwen3ForCausalLM

    def settings(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> dict[str, Any]:
        window = architecture.get("sliding_window")
        return super().settings(architecture, tokens, max_positions) | {
            "use_sliding_window": window is not None,
            "sliding_window": window,
            "layer_types": layer_types(architecture),
        }

    def masks(self, model: Any, visible: Callable[[int | None], Tensor]) -> Any:
        return masks_by_type(model, visible)


FAMILY = Qwen3()

"""Gemma 3 (text): as Gemma 2, with normed queries and keys, and a rotary embedding a layer kind.

transformers caps its attention nowhere, whatever `attn_logit_softcapping` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from mechdistill.models.families.gemma2 import Gemma2

OPTIONS = ("sliding_window", "full_attention_every", "sliding_rope_theta")
"""Keys of an architecture that this family takes beside the common ones."""


class Gemma3(Gemma2):
    """Layers with a window turn queries and keys by angles of their own."""

    config_class = Gemma3TextConfig
    model_class = Gemma3ForCausalLM

    def settings(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> dict[str, Any]:
        settings = super().settings(architecture, tokens, max_positions)
        everywhere = settings["rope_parameters"]
        theta = architecture.get("sliding_rope_theta") or everywhere["rope_theta"]
        settings["rope_parameters"] = {
            "full_attention": everywhere,
            "sliding_attention": {**everywhere, "rope_theta": theta},
        }
        return settings

    def rotation(
        self, model: Any, layer: int, x: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        kind = model.config.layer_types[layer]
        cosines, sines = self.decoder(model).rotary_emb(x, positions, kind)
        return cosines, sines


FAMILY = Gemma3()

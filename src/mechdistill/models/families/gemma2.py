"""Gemma 2: norms behind both blocks, gains stored less one, soft-capped attention and logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Tensor
from transformers import Gemma2Config, Gemma2ForCausalLM, PreTrainedConfig

from mechdistill.errors import InputError
from mechdistill.models.decoder import Decoder, head_dim, layer_types, masks_by_type

OPTIONS = ("sliding_window", "full_attention_every")
"""Keys of an architecture that this family takes beside the common ones."""


class Gemma2(Decoder):
    """What the Gemmas have in common; the cap on attention reaches the tap from transformers."""

    config_class: ClassVar[type[PreTrainedConfig]] = Gemma2Config
    model_class: ClassVar[type[Any]] = Gemma2ForCausalLM

    def check(self, model: Any) -> None:
        if model.config.use_bidirectional_attention:
            raise InputError(
                f"this {model.config.model_type} model attends to later tokens "
                "(use_bidirectional_attention), as embedding models do",
                "use a causal language model: heads are read where the next token is predicted",
            )

    def settings(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> dict[str, Any]:
        return super().settings(architecture, tokens, max_positions) | {
            "query_pre_attn_scalar": head_dim(architecture),
            # transformers makes the mask of a window also where no layer has one
            "sliding_window": architecture.get("sliding_window") or max_positions,
            "layer_types": layer_types(architecture),
        }

    def norm_behind_attention(self, model: Any, layer: int) -> tuple[Tensor, float] | None:
        block: Any = self.blocks(model)[layer]
        return _gain(block.post_attention_layernorm)

    def final_norm(self, model: Any) -> tuple[Tensor, float]:
        return _gain(self.decoder(model).norm)

    def logit_cap(self, model: Any) -> float | None:
        cap: float | None = model.config.final_logit_softcapping
        return cap

    def masks(self, model: Any, visible: Callable[[int | None], Tensor]) -> Any:
        return masks_by_type(model, visible)


def _gain(norm: Any) -> tuple[Tensor, float]:
    """Gain and epsilon of a norm that stores its gain less one."""
    return 1.0 + norm.weight.float(), norm.eps


FAMILY = Gemma2()

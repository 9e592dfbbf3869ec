"""The layout that transformers gives most decoders; a family's file says what it does otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn
from transformers import PreTrainedConfig


class Decoder:
    """Pre-norm blocks with rotary attention, a last RMS norm and a linear read-out (see `Family`).

    A subclass names its two classes of transformers; everything else may stay.
    """

    config_class: ClassVar[type[PreTrainedConfig]]
    model_class: ClassVar[type[Any]]

    def check(self, model: Any) -> None:
        """Nothing to refuse."""

    def build(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> Any:
        return self.model_class(
            self.config_class(**self.settings(architecture, tokens, max_positions))
        )

    def settings(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> dict[str, Any]:
        """transformers' configuration of a section of the parameters."""
        return {
            "vocab_size": tokens["vocab_size"],
            "hidden_size": architecture["hidden_size"],
            "intermediate_size": architecture["intermediate_size"],
            "num_hidden_layers": architecture["layers"],
            "num_attention_heads": architecture["heads"],
            "num_key_value_heads": architecture["kv_heads"],
            "head_dim": head_dim(architecture),
            "max_position_embeddings": max_positions,
            "rope_parameters": {"rope_type": "default", "rope_theta": architecture["rope_theta"]},
            "pad_token_id": tokens["pad"],
            "bos_token_id": tokens["bos"],
            "eos_token_id": tokens["eos"],
        }

    def from_config(self, config: Mapping[str, Any]) -> Any:
        return self.model_class(self.config_class.from_dict(dict(config)))

    def decoder(self, model: Any) -> Any:
        return model.get_decoder()  # finds it inside an adapted (LoRA) model as well

    def blocks(self, model: Any) -> nn.ModuleList:
        layers: nn.ModuleList = self.decoder(model).layers
        return layers

    def output_projection(self, model: Any, layer: int) -> nn.Module:
        projection: nn.Module = self.blocks(model)[layer].self_attn.o_proj  # type: ignore[assignment,union-attr]
        return projection

    def norm_behind_attention(self, model: Any, layer: int) -> tuple[Tensor, float] | None:
        return None

    def final_norm(self, model: Any) -> tuple[Tensor, float]:
        norm = self.decoder(model).norm
        return norm.weight, norm.variance_epsilon

    def unembedding(self, model: Any) -> nn.Module:
        head: nn.Module = model.get_output_embeddings()
        return head

    def logit_cap(self, model: Any) -> float | None:
        return None

    def rotation(
        self, model: Any, layer: int, x: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        cosines, sines = self.decoder(model).rotary_emb(x, position_ids=positions)
        return cosines, sines

    def masks(self, model: Any, visible: Callable[[int | None], Tensor]) -> Any:
        return visible(None)


def head_dim(architecture: Mapping[str, Any]) -> int:
    """Width of a head: as given, or its share of the residual width."""
    given = architecture.get("head_dim")
    return int(given or architecture["hidden_size"] // architecture["heads"])


def layer_types(architecture: Mapping[str, Any]) -> list[str]:
    """transformers' name of each layer's attention.

    Every `full_attention_every`-th layer sees all keys, the others a sliding window; without the
    key all slide, without a window none does.
    """
    layers, every = architecture["layers"], architecture.get("full_attention_every")
    if architecture.get("sliding_window") is None:
        return ["full_attention"] * layers
    return [
        "full_attention" if every and (layer + 1) % every == 0 else "sliding_attention"
        for layer in range(layers)
    ]


def masks_by_type(model: Any, visible: Callable[[int | None], Tensor]) -> dict[str, Tensor]:
    """Masks of a model that keeps one for each kind of layer."""
    windows = {"full_attention": None, "sliding_attention": model.config.sliding_window}
    return {kind: visible(windows[kind]) for kind in set(model.config.layer_types)}

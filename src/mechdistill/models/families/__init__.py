"""What differs between model families, one small file a family.

A file is named after transformers' ``model_type`` and holds one object, ``FAMILY``, that answers
the questions below. To add a family, add its file and a line in ``FAMILIES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor, nn

from mechdistill.errors import InputError
from mechdistill.models.families import llama


class Family(Protocol):
    """The parts of a decoder that scores and patches have to find."""

    def build(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> Any:
        """A model with fresh weights (drawn from torch's global generator).

        ``architecture`` is the parameter section, ``tokens`` holds vocab_size, pad, bos and eos.
        """

    def from_config(self, config: Mapping[str, Any]) -> Any:
        """A model with fresh weights from transformers' own configuration."""

    def output_projection(self, model: Any, layer: int) -> nn.Module:
        """The module that maps the heads' mixed values [..., H * D] to the residual [..., d]."""

    def blocks(self, model: Any) -> nn.ModuleList:
        """The decoder layers, in order; each returns the residual stream [B, T, d]."""

    def final_norm(self, model: Any) -> tuple[Tensor, float]:
        """Gain [d] and epsilon of the last RMS norm: y = gain * h / sqrt(mean(h^2) + epsilon)."""

    def unembedding(self, model: Any) -> nn.Module:
        """The linear map from the normed residual [..., d] to logits [..., V], without bias."""

    def rotation(self, model: Any, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [B, N, D] of the rotary embedding at ``positions`` [B, N]."""


FAMILIES: dict[str, Family] = {"llama": llama.FAMILY}
"""By transformers' ``model_type``."""


def family(model_type: str) -> Family:
    """The adapter of a family.

    Raises:
        InputError: the family is not known.
    """
    if model_type not in FAMILIES:
        raise InputError(
            f"model family {model_type!r} is not known",
            f"use one of {', '.join(FAMILIES)}, or add a file to src/mechdistill/models/families",
        )
    return FAMILIES[model_type]


def family_of(model: Any) -> Family:
    """The adapter that fits a loaded model."""
    return family(model.config.model_type)

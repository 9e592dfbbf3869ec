"""What differs between model families, one small file a family.

A file is named after transformers' ``model_type`` and holds one object, ``FAMILY``, that answers
the questions below; ``models/decoder.py`` answers them for the layout that most families share. To
add a family, add its file and a line in ``FAMILIES``, or `register` it from outside the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch import Tensor, nn

from mechdistill.errors import InputError
from mechdistill.models.families import gemma2, gemma3_text, llama, qwen3


class Family(Protocol):
    """The parts of a decoder that scores and patches have to find.

    A file may also hold ``OPTIONS``: names of keys of an architecture that only some families take.
    """

    def check(self, model: Any) -> None:
        """Refuse a model whose configuration asks for what cannot be read (InputError)."""

    def build(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> Any:
        """A model with fresh weights (drawn from torch's global generator).

        ``architecture`` is the parameter section, ``tokens`` holds vocab_size, pad, bos and eos.
        """

    def from_config(self, config: Mapping[str, Any]) -> Any:
        """A model with fresh weights from transformers' own configuration."""

    def decoder(self, model: Any) -> Any:
        """The module that maps token ids to the normed residual [B, T, d]."""

    def blocks(self, model: Any) -> nn.ModuleList:
        """The decoder layers, in order; each returns the residual stream [B, T, d]."""

    def output_projection(self, model: Any, layer: int) -> nn.Module:
        """The module that maps the heads' mixed values [..., H * D] to [..., d]."""

    def norm_behind_attention(self, model: Any, layer: int) -> tuple[Tensor, float] | None:
        """Gain and epsilon of an RMS norm between output projection and residual, if any."""

    def final_norm(self, model: Any) -> tuple[Tensor, float]:
        """Gain [d] and epsilon of the last RMS norm: y = gain * h / sqrt(mean(h^2) + epsilon)."""

    def unembedding(self, model: Any) -> nn.Module:
        """The linear map from the normed residual [..., d] to logits [..., V], without bias."""

    def logit_cap(self, model: Any) -> float | None:
        """c where the logits are c * tanh(u / c) of the unembedding's u; None where they are u."""

    def rotation(
        self, model: Any, layer: int, x: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Cosines and sines [B, N, D] of a layer's rotary embedding at ``positions`` [B, N]."""

    def masks(self, model: Any, visible: Callable[[int | None], Tensor]) -> Any:
        """What the model takes as ``attention_mask`` when its masks are given, not derived.

        ``visible(window)`` is the mask [B, 1, T, K] of layers that see the last ``window`` keys,
        the query's own included, and ``visible(None)`` that of layers that see all.
        """


FAMILIES: dict[str, Family] = {
    "gemma2": gemma2.FAMILY,
    "gemma3_text": gemma3_text.FAMILY,
    "llama": llama.FAMILY,
    "qwen3": qwen3.FAMILY,
}
"""By transformers' ``model_type``."""


def register(model_type: str, adapter: Family) -> None:
    """Make a family known in this process, by transformers' ``model_type``.

    Raises:
        InputError: the adapter lacks parts of a `Family`.
    """
    missing = [part for part in PARTS if not callable(getattr(adapter, part, None))]
    if missing:
        raise InputError(
            f"the adapter of model family {model_type!r} has no {', '.join(missing)}",
            "derive it from mechdistill.models.decoder.Decoder, or see docs/families.md",
        )
    FAMILIES[model_type] = adapter


PARTS = tuple(name for name in vars(Family) if not name.startswith("_"))
"""Names of what an adapter answers."""


def family(model_type: str) -> Family:
    """The adapter of a family.

    Raises:
        InputError: the family is not known.
    """
    if model_type not in FAMILIES:
        raise InputError(
            f"model family {model_type!r} is not known",
            f"use one of {', '.join(FAMILIES)}, or write an adapter: a file in "
            f"src/mechdistill/models/families that answers {', '.join(PARTS)}, most of which "
            "mechdistill.models.decoder.Decoder answers already (see docs/families.md)",
        )
    return FAMILIES[model_type]


def family_of(model: Any) -> Family:
    """The adapter that fits a loaded model.

    Raises:
        InputError: the family is not known.
    """
    config = model.config
    inner = getattr(config, "text_config", None)
    if config.model_type not in FAMILIES and inner is not None:
        raise InputError(
            f"{type(model).__name__} ({config.model_type!r}) is a wrapper of several models, of "
            f"which {inner.model_type!r} is the text model",
            "take the text model out of it as docs/families.md shows; from_pretrained of the text "
            "model's class leaves weights at random",
        )
    return family(config.model_type)


def check(model: Any) -> None:
    """See that a model can be read, before anything is spent on it.

    Raises:
        InputError: no adapter knows its family, the adapter does not find its parts, or its
            configuration asks for what cannot be read.
    """
    adapter = family_of(model)
    try:
        for index in range(len(adapter.blocks(model))):
            adapter.output_projection(model, index)
            adapter.norm_behind_attention(model, index)
        adapter.final_norm(model)
        unembedding = adapter.unembedding(model)
    except AttributeError as error:
        unembedding, missing = None, str(error)
    else:
        missing = "no unembedding"
    if unembedding is None:
        raise InputError(
            f"{type(model).__name__} has not the parts of a {model.config.model_type} causal "
            f"language model ({missing})",
            "load it by AutoModelForCausalLM, or mend the adapter (docs/families.md)",
        )
    adapter.check(model)

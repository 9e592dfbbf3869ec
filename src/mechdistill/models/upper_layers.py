"""Some upper layers of a model as a module of its own, which reads the stream that enters them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from mechdistill.models.families import family


class UpperLayers(nn.Module):
    """A few layers and a final norm, of the family and size of a model.

    Args:
        config: of transformers, as `layers_like` gives it.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.config = dict(config)
        with torch.random.fork_rng(devices=[]):  # the weights are overwritten
            model = family(config["model_type"]).from_config(config)
        self.decoder = model.base_model.float()

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """The stream [B, T, d] that enters, with mask [B, T], to the normed one that leaves."""
        output: Tensor = self.decoder(
            inputs_embeds=states, attention_mask=mask, use_cache=False
        ).last_hidden_state
        return output


def copy_of_layers(model: Any, first: int, count: int) -> UpperLayers:
    """Layers `first` to `first + count - 1` of a model, and its final norm.

    Raises:
        ValueError: the model has no such layers.
    """
    if not 0 <= first < first + count <= model.config.num_hidden_layers:
        raise ValueError(
            f"a model of {model.config.num_hidden_layers} layers has no {first} to "
            f"{first + count - 1}"
        )
    found = UpperLayers(layers_like(model.config.to_dict(), first, count))
    adapter = family(model.config.model_type)
    # state dicts, since modules of two models may share nothing
    for own, theirs in zip(
        found.decoder.layers, adapter.blocks(model)[first : first + count], strict=True
    ):
        own.load_state_dict(theirs.state_dict())
    found.decoder.norm.load_state_dict(model.base_model.norm.state_dict())
    return found


def layers_like(config: Mapping[str, Any], first: int, count: int) -> dict[str, Any]:
    """Configuration of `count` layers from `first` on, their vocabulary one word, never read."""
    kinds = config.get("layer_types")
    return {
        **config,
        "layer_types": None if kinds is None else kinds[first : first + count],
        "num_hidden_layers": count,
        "vocab_size": 1,
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id")),
    }

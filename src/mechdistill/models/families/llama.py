"""Llama: grouped-query attention, rotary positions, no norm behind the attention block."""

from __future__ import annotations

from transformers import LlamaConfig, LlamaForCausalLM

from mechdistill.models.decoder import Decoder


class Llama(Decoder):
    """The common layout as it is."""

    config_class = LlamaConfig
    model_class = LlamaForCausalLM


FAMILY = Llama()

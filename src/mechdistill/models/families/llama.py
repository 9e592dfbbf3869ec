"""Llama: grouped-query attention, rotary positions, no norm behind the attention block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM


class Llama:
    """Where a Llama keeps its parts (see `Family`)."""

    def build(
        self, architecture: Mapping[str, Any], tokens: Mapping[str, int], max_positions: int
    ) -> LlamaForCausalLM:
        config = LlamaConfig(
            vocab_size=tokens["vocab_size"],
            hidden_size=architecture["hidden_size"],
            intermediate_size=architecture["intermediate_size"],
            num_hidden_layers=architecture["layers"],
            num_attention_heads=architecture["heads"],
            num_key_value_heads=architecture["kv_heads"],
            head_dim=architecture.get("head_dim"),  # None: hidden size / heads
            max_position_embeddings=max_positions,
            rope_parameters={"rope_type": "default", "rope_theta": architecture["rope_theta"]},
            pad_token_id=tokens["pad"],
            bos_token_id=tokens["bos"],
            eos_token_id=tokens["eos"],
        )
        return LlamaForCausalLM(config)

    def from_config(self, config: Mapping[str, Any]) -> LlamaForCausalLM:
        return LlamaForCausalLM(LlamaConfig.from_dict(dict(config)))

    def output_projection(self, model: LlamaForCausalLM, layer: int) -> nn.Module:
        projection: nn.Module = model.model.layers[layer].self_attn.o_proj
        return projection

    def blocks(self, model: LlamaForCausalLM) -> nn.ModuleList:
        layers: nn.ModuleList = model.model.layers
        return layers

    def final_norm(self, model: LlamaForCausalLM) -> tuple[Tensor, float]:
        return model.model.norm.weight, model.model.norm.variance_epsilon

    def unembedding(self, model: LlamaForCausalLM) -> nn.Module:
        head: nn.Module = model.lm_head
        return head

    def rotation(
        self, model: LlamaForCausalLM, x: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        cosines, sines = model.model.rotary_emb(x, position_ids=positions)
        return cosines, sines


FAMILY = Llama()

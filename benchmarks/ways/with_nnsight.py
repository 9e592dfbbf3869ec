"""Scoring all heads with nnsight: returned weights of the eager model, read inside a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from nnsight import NNsight
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from benchmarks.factors import Shown, factors, read_outs
from benchmarks.made_up import made_up_model, made_up_trace
from benchmarks.worker import Work, main


def scoring(setting: Mapping[str, Any]) -> Work:
    """Only what is asked for of each layer is kept."""
    torch.set_num_threads(1)
    model = made_up_model(setting["model"], "eager")
    seen_model = NNsight(model)
    trace = made_up_trace(setting["tokens"])
    ids = torch.tensor([trace.ids])
    early, refine, mentions = (list(at) for at in (trace.early, trace.refine, trace.mentions))
    queries = early + refine
    heads = model.config.num_attention_heads
    layers = range(model.config.num_hidden_layers)

    @torch.no_grad()
    def work() -> dict[str, np.ndarray]:
        rows: list[Any] = []
        mixed: list[Any] = []
        query: list[Any] = []
        key: list[Any] = []
        # what a trace reads must be named in the order in which the model computes it
        with seen_model.trace(ids, use_cache=False, output_attentions=True):
            for layer in layers:
                attention = seen_model.model.layers[layer].self_attn
                query.append(attention.q_proj.output[0, refine].save())
                key.append(attention.k_proj.output[0, mentions].save())
                mixed.append(attention.o_proj.input[0, queries].save())
                rows.append(attention.output[1][0][:, early].save())
            final = seen_model.model.norm.input[0, refine].save()
        cosines, sines = model.model.rotary_emb(final[None], torch.arange(ids.shape[1])[None])

        def turned(x: torch.Tensor, at: list[int]) -> torch.Tensor:
            by_head = x.unflatten(-1, (heads, -1)).transpose(0, 1)[None]
            return apply_rotary_pos_emb(by_head, by_head, cosines[:, at], sines[:, at])[0][0]

        shown = [
            Shown(
                rows[layer],
                mixed[layer].unflatten(-1, (heads, -1)).transpose(0, 1),
                turned(query[layer], refine),
                turned(key[layer], mentions),
            )
            for layer in layers
        ]
        anchor, gradient = read_outs(model, final, trace)
        projections = [block.self_attn.o_proj.weight for block in model.model.layers]
        return factors(shown, projections, anchor, gradient, trace)

    return work


if __name__ == "__main__":
    main({"nnsight": scoring})

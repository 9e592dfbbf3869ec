"""Ways of ablating every head alone at the last position of a prompt: mean output in its place.

`branches`: the workflow's, heads as branches over one cache. `a pass a head`: one full forward pass
a head of the fused model, the head's output put in by a hook of the projection. `attribution`: the
first-order estimate of all of them, one pass and one backward pass of the last position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.made_up import MODELS, corrupted, decision, made_up_model, made_up_trace
from benchmarks.worker import Work, main

BRANCHES = 2048
"""Branches in one call, as params.yaml sets it."""


def branches(setting: Mapping[str, Any]) -> Work:
    """`mechdistill.patching.ablation.ablate` on one trace with one decision."""
    from mechdistill.patching.ablation import ablate, mean_mixed
    from mechdistill.patching.conditions import head_masks, heads_of

    model, forced, reference = _forced(setting)
    size = MODELS[setting["model"]]["layers"], MODELS[setting["model"]]["heads"]
    masks = head_masks([frozenset([head]) for head in heads_of(*size)], *size)
    means = mean_mixed(model, [reference], pad_id=0)

    def work() -> dict[str, np.ndarray]:
        margins = ablate(model, [forced], means, masks, pad_id=0, branches_per_pass=BRANCHES)
        return {"margins": margins[0, 1:].numpy()}

    return work


def attribution(setting: Mapping[str, Any]) -> Work:
    """`mechdistill.patching.ablation.attribute`; its estimates are not the others' values."""
    from mechdistill.patching.ablation import attribute, mean_mixed

    model, forced, reference = _forced(setting)
    means = mean_mixed(model, [reference], pad_id=0)

    def work() -> dict[str, np.ndarray]:
        attribute(model, [forced], means, pad_id=0)
        return {}

    return work


def a_pass_a_head(setting: Mapping[str, Any]) -> Work:
    """Module hooks on the fused model."""
    torch.set_num_threads(1)
    model = made_up_model(setting["model"], "sdpa")
    ids = made_up_trace(setting["tokens"]).ids
    target, foil = decision(model, ids)
    projections = [block.self_attn.o_proj for block in model.model.layers]
    width = model.config.head_dim

    @torch.inference_mode()
    def outputs(tokens: tuple[int, ...]) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        hooks = [
            projection.register_forward_pre_hook(
                lambda m, args: found.append(args[0][0, -1].clone())
            )
            for projection in projections
        ]
        model(torch.tensor([tokens]), use_cache=False, logits_to_keep=1)
        for hook in hooks:
            hook.remove()
        return found

    means = outputs(corrupted(ids))

    @torch.inference_mode()
    def work() -> dict[str, np.ndarray]:
        margins = []
        for layer, projection in enumerate(projections):
            for head in range(model.config.num_attention_heads):
                part = slice(head * width, (head + 1) * width)

                def put_in(
                    module: Any, args: Any, layer: int = layer, part: slice = part
                ) -> tuple[torch.Tensor]:
                    args[0][0, -1, part] = means[layer][part]
                    return (args[0],)

                hook = projection.register_forward_pre_hook(put_in)
                logits = model(torch.tensor([ids]), use_cache=False, logits_to_keep=1).logits[0, -1]
                hook.remove()
                margins.append(float(logits[target] - logits[foil]))
        return {"margins": np.array(margins, dtype=np.float32)}

    return work


def _forced(setting: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The tapped model, the trace with its decision, and the trace whose output is the mean."""
    from mechdistill.patching.ablation import ForcedTrace
    from mechdistill.patching.null_events import Reading

    torch.set_num_threads(1)
    model = made_up_model(setting["model"], "tapped")
    ids = made_up_trace(setting["tokens"]).ids
    target, foil = decision(model, ids)
    read = [Reading(len(ids) - 1, target, (foil,))]
    return model, ForcedTrace(ids, read), ForcedTrace(corrupted(ids), read)


if __name__ == "__main__":
    main({"branches": branches, "attribution": attribution, "a pass a head": a_pass_a_head})

"""Ways of patching heads' outputs at the last position of a prompt, both directions.

`sweep`: the workflow's, conditions as branches over one cache. `a pass each`: one full forward pass
a condition and direction of the fused model, heads' outputs put in by a hook of the projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.made_up import corrupted, decision, head_sets, made_up_model, made_up_trace
from benchmarks.worker import Work, main

BRANCHES = 2048
"""Branches in one call, as params.yaml sets it."""


def sweep(setting: Mapping[str, Any]) -> Work:
    """`mechdistill.patching.margin_sweep.sweep_margins` on one pair with one event."""
    from mechdistill.patching.margin_sweep import sweep_margins
    from mechdistill.patching.pairs import Pair
    from mechdistill.traces.parse import Event, Trace

    torch.set_num_threads(1)
    model = made_up_model(setting["model"], "tapped")
    ids = made_up_trace(setting["tokens"]).ids
    target, foil = decision(model, ids)
    query = len(ids) - 1
    event = Event("region", "reasoning", query, target, (foil,), "", ("",), -1)
    trace = Trace(
        example="made up",
        split="patching",
        tokens=(*ids, target),
        prompt_length=len(ids),
        text="",
        status="ok",
        answer=(),
        early=(query,),
        late_start=-1,
        reasoning_end=len(ids) + 1,
        mentions=(),
        events=(event,),
        refine=(),
    )
    pair = Pair(trace, "K1", corrupted(ids))
    masks = torch.from_numpy(head_sets(setting["model"], setting["conditions"]))

    def work() -> dict[str, np.ndarray]:
        (effects,) = sweep_margins(
            model, [pair], 1, masks, pad_id=0, branches_per_pass=BRANCHES, sites=("output",)
        )
        denoise, noise = effects.patched[0]
        return {"denoise": denoise, "noise": noise}

    return work


def a_pass_each(setting: Mapping[str, Any]) -> Work:
    """Module hooks on the fused model."""
    torch.set_num_threads(1)
    model = made_up_model(setting["model"], "sdpa")
    clean = made_up_trace(setting["tokens"]).ids
    other = corrupted(clean)
    target, foil = decision(model, clean)
    sets = torch.from_numpy(head_sets(setting["model"], setting["conditions"]))
    projections = [block.self_attn.o_proj for block in model.model.layers]
    width = model.config.head_dim

    def run(ids: tuple[int, ...], hook: Any) -> Tensor:
        hooks = [
            projection.register_forward_pre_hook(
                lambda module, args, layer=layer: hook(layer, args[0])
            )
            for layer, projection in enumerate(projections)
        ]
        try:
            return model(torch.tensor([ids]), use_cache=False, logits_to_keep=1).logits[0, -1]
        finally:
            for handle in hooks:
                handle.remove()

    def outputs(ids: tuple[int, ...]) -> dict[int, Tensor]:
        found: dict[int, Tensor] = {}

        def keep(layer: int, mixed: Tensor) -> None:
            found[layer] = mixed[:, -1].clone()

        run(ids, keep)
        return found

    def patched(ids: tuple[int, ...], donor: Mapping[int, Tensor], heads: Tensor) -> float:
        def put_in(layer: int, mixed: Tensor) -> tuple[Tensor]:
            chosen = heads[layer].repeat_interleave(width)
            mixed[:, -1] = torch.where(chosen, donor[layer], mixed[:, -1])
            return (mixed,)

        logits = run(ids, put_in)
        return float(logits[target] - logits[foil])

    @torch.inference_mode()
    def work() -> dict[str, np.ndarray]:
        donors = {ids: outputs(ids) for ids in (clean, other)}
        return {
            name: np.array([patched(recipient, donors[donor], heads) for heads in sets])
            for name, donor, recipient in (("denoise", clean, other), ("noise", other, clean))
        }

    return work


if __name__ == "__main__":
    main({"sweep": sweep, "a pass each": a_pass_each})

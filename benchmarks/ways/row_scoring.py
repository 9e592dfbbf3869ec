"""Ways of scoring all heads of made-up traces at 30 query positions.

`plain`: the fused forward pass that shows nothing. `rows`: the same pass tapped, and all factors of
both scores. `every variant`: all that the workflow's score_heads computes, gradients through the
later layers included. `eager`: attention weights returned by transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.factors import (
    MINIMUM_KEYS,
    Shown,
    early_factors,
    factors,
    read_outs,
    refine_factors,
    stacked,
)
from benchmarks.made_up import MadeUp, made_up_model, made_up_trace
from benchmarks.worker import Work, main

Traces = Sequence[MadeUp]


def plain(model: Any, traces: Traces) -> Work:
    """The pass alone."""
    ids = torch.tensor([trace.ids for trace in traces])

    @torch.no_grad()
    def work() -> dict[str, np.ndarray]:
        model.base_model(ids, use_cache=False)
        return {}

    return work


def rows(model: Any, traces: Traces) -> Work:
    """The tapped pass and the factors of Eqs. 1 and 3, all heads."""
    from mechdistill.heads.reading import Reading, read
    from mechdistill.models.margin import margin_gradient

    places = [places_of(trace) for trace in traces]

    @torch.no_grad()
    def work() -> dict[str, np.ndarray]:
        early: list[dict[str, Tensor]] = []

        def at_layer(reading: Reading, layer: int) -> None:
            rows, _ = reading.early_rows(layer)
            anchor = reading.anchor("unembed", layer)
            early.append(early_factors(rows, reading.early_writes(layer), anchor, traces[0]))

        reading = read(model, places, at_layer=at_layer)
        gradient = margin_gradient(model, reading.h_final, *reading.pair_ids())
        late = [
            refine_factors(
                reading.refine_queries(layer),
                reading.at_mentions(layer)[0],
                reading.refine_writes(layer),
                gradient,
                traces[0],
            )
            for layer in reading.layers
        ]
        return stacked([one | other for one, other in zip(early, late, strict=True)])

    return work


def every_variant(model: Any, traces: Traces) -> Work:
    """As the workflow scores heads."""
    from mechdistill.heads.measure import score_variants

    places = [places_of(trace) for trace in traces]

    def work() -> dict[str, np.ndarray]:
        score_variants(model, places, MINIMUM_KEYS)
        return {}

    return work


def eager(model: Any, traces: Traces) -> Work:
    """Weights returned for every pair of tokens; queries, keys and mixtures by module hooks."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    (trace,) = traces
    ids = torch.tensor([trace.ids])
    queries = [*trace.early, *trace.refine]
    heads = model.config.num_attention_heads

    @torch.no_grad()
    def work() -> dict[str, np.ndarray]:
        seen: dict[tuple[int, str], torch.Tensor] = {}
        hooks = [
            model.model.norm.register_forward_pre_hook(
                lambda module, args: seen.update({(-1, "final"): args[0]})
            )
        ]
        for layer, block in enumerate(model.model.layers):
            attention = block.self_attn
            for name in ("q_proj", "k_proj"):
                hooks.append(
                    getattr(attention, name).register_forward_hook(
                        lambda module, args, output, key=(layer, name): seen.update({key: output})
                    )
                )
            hooks.append(
                attention.o_proj.register_forward_pre_hook(
                    lambda module, args, key=(layer, "mixed"): seen.update({key: args[0]})
                )
            )
        output = model.model(ids, use_cache=False, output_attentions=True)
        for hook in hooks:
            hook.remove()
        rotation = model.model.rotary_emb(output[0], torch.arange(ids.shape[1])[None])
        shown = []
        for layer, weights in enumerate(output.attentions):
            split = [
                seen[layer, name][0].unflatten(-1, (heads, -1)).transpose(0, 1)
                for name in ("q_proj", "k_proj", "mixed")
            ]
            query, key = apply_rotary_pos_emb(split[0][None], split[1][None], *rotation)
            shown.append(
                Shown(
                    weights[0][:, list(trace.early)],
                    split[2][:, queries],
                    query[0][:, list(trace.refine)],
                    key[0][:, list(trace.mentions)],
                )
            )
        anchor, gradient = read_outs(model, seen[-1, "final"][0, list(trace.refine)], trace)
        projections = [block.self_attn.o_proj.weight for block in model.model.layers]
        return factors(shown, projections, anchor, gradient, trace)

    return work


def places_of(trace: MadeUp) -> Any:
    """The trace as the scores take it."""
    from mechdistill.heads.places import Places
    from mechdistill.traces.parse import RefinePosition

    return Places(
        example="made up",
        tokens=trace.ids,
        prompt_length=trace.prompt_length,
        early=trace.early,
        region_events=trace.early[:2],
        refine=tuple(
            RefinePosition(
                query=query,
                target=trace.target,
                foil=trace.foil,
                clause=0,
                shortlist=trace.shortlist,
                near_miss=trace.near_miss,
            )
            for query in trace.refine
        ),
        sinks=(0,),
        anchors=tuple((token,) for token in trace.anchors),
        anchor_mentions=trace.mentions[:2],
        evidence=trace.mentions[:2],
        cues=((trace.mentions[0],),) * len(trace.refine),
        gold=(trace.target,),
        near=(trace.foil,),
    )


WAYS: Mapping[str, tuple[Callable[[Any, Traces], Work], str]] = {
    "plain": (plain, "sdpa"),
    "rows": (rows, "tapped"),
    "every variant": (every_variant, "tapped"),
    "eager": (eager, "eager"),
}
"""Each with the attention that it needs."""


def prepared(way: str, setting: Mapping[str, Any]) -> Work:
    """A way on the setting's model and traces."""
    torch.set_num_threads(1)
    made, attention = WAYS[way]
    model = made_up_model(setting["model"], attention, changes=setting.get("shape"))
    count = setting.get("examples", 1)
    return made(model, [made_up_trace(setting["tokens"], seed) for seed in range(count)])


if __name__ == "__main__":
    main({way: lambda setting, way=way: prepared(way, setting) for way in WAYS})

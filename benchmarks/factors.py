"""The factors of both scores from what a forward pass showed; the same arithmetic for every way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.made_up import MadeUp
from mechdistill.heads.coarse import anchor_alignment, drop_sinks, kurtosis
from mechdistill.heads.refine import helpfulness, loop_back

MINIMUM_KEYS = 8


@dataclass(frozen=True)
class Shown:
    """One layer's heads at the query positions, the early ones first.

    H heads, E early and R refinement positions, T tokens, P mentions, D head width.
    """

    rows: Tensor
    """Attention rows of the early positions [H, E, T]."""
    mixed: Tensor
    """What enters the output projection [H, E + R, D]."""
    query: Tensor
    """After rotary, at the refinement positions [H, R, D]."""
    key: Tensor
    """After rotary, at the mentions [H, P, D]."""


def factors(
    layers: Sequence[Shown],
    projections: Sequence[Tensor],
    anchor: Tensor,
    gradient: Tensor,
    trace: MadeUp,
) -> dict[str, np.ndarray]:
    """Mean over positions of sharpness, alignment, loop-back and help: [L, H] each.

    Args:
        projections: weight of each layer's output projection [d, H D].
        anchor: [d].
        gradient: of the margin at the refinement positions [R, d].
    """
    found: list[dict[str, Tensor]] = []
    for shown, weight in zip(layers, projections, strict=True):
        heads, _, width = shown.mixed.shape
        by_head = weight.T.reshape(heads, width, -1)
        writes = torch.einsum("hqd,hdw->hqw", shown.mixed, by_head)[None]
        early = len(trace.early)
        found.append(
            early_factors(shown.rows[None], writes[:, :, :early], anchor[None], trace)
            | refine_factors(
                shown.query[None], shown.key[None], writes[:, :, early:], gradient[None], trace
            )
        )
    return stacked(found)


def early_factors(rows: Tensor, writes: Tensor, anchor: Tensor, trace: MadeUp) -> dict[str, Tensor]:
    """Sharpness and alignment of one layer at the early positions, each [B, H].

    Args:
        rows: [B, H, E, T]. writes: [B, H, E, d]. anchor: [B, d].
    """
    keys = torch.arange(rows.shape[-1])
    visible = keys <= torch.tensor(trace.early)[:, None]
    kept, readable = drop_sinks(rows, visible, keys == 0)
    return {
        "kurtosis": kurtosis(kept, readable, minimum_keys=MINIMUM_KEYS).nanmean(-1),
        "cosine": anchor_alignment(writes, anchor).nanmean(-1),
    }


def refine_factors(
    query: Tensor, key: Tensor, writes: Tensor, gradient: Tensor, trace: MadeUp
) -> dict[str, Tensor]:
    """Loop-back and help of one layer at the refinement positions, each [B, H].

    Args:
        query: [B, H, R, D]. key: [B, H, P, D]. writes: [B, H, R, d]. gradient: [B, R, d].
    """
    before = torch.tensor(trace.mentions) < torch.tensor(trace.refine)[:, None]
    even = torch.arange(len(trace.mentions)) % 2 == 0
    sets = (before & even)[None], (before & ~even)[None]
    return {
        "loop": loop_back(query, key, *sets).nanmean(-1),
        "help": helpfulness(writes, gradient).nanmean(-1),
    }


def stacked(layers: Sequence[dict[str, Tensor]]) -> dict[str, np.ndarray]:
    """The first example's values, [L, H] each."""
    return {name: torch.stack([of[name][0] for of in layers]).numpy() for name in layers[0]}


def read_outs(model: Any, h_final: Tensor, trace: MadeUp) -> tuple[Tensor, Tensor]:
    """Anchor [d]; gradient of the margin [R, d] at `h_final`, what the final norm gets [R, d]."""
    rows, gain = model.lm_head.weight, model.model.norm.weight
    anchor = (rows[list(trace.anchors)].mean(0) - rows.mean(0)) * gain
    weighted = (rows[trace.target] - rows[trace.foil]) * gain
    scale = (h_final.square().mean(-1, keepdim=True) + model.config.rms_norm_eps).sqrt()
    along = (h_final * weighted).sum(-1, keepdim=True)
    return anchor, weighted / scale - h_final * along / (h_final.shape[-1] * scale**3)

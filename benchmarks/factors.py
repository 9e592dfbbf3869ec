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
    found: dict[str, list[Tensor]] = {"kurtosis": [], "cosine": [], "loop": [], "help": []}
    for shown, weight in zip(layers, projections, strict=True):
        heads, _, width = shown.mixed.shape
        by_head = weight.T.reshape(heads, width, -1)
        writes = torch.einsum("hqd,hdw->hqw", shown.mixed, by_head)[None]
        early = len(trace.early)
        for name, value in layer_factors(
            shown.rows[None],
            writes[:, :, :early],
            anchor[None],
            shown.query[None],
            shown.key[None],
            writes[:, :, early:],
            gradient[None],
            trace,
        ).items():
            found[name].append(value)
    return {name: torch.stack(values).numpy() for name, values in found.items()}


def layer_factors(
    rows: Tensor,
    early_writes: Tensor,
    anchor: Tensor,
    query: Tensor,
    key: Tensor,
    refine_writes: Tensor,
    gradient: Tensor,
    trace: MadeUp,
) -> dict[str, Tensor]:
    """Of one layer, each [H]; arguments with a batch in front, whose first trace is returned."""
    keys = torch.arange(rows.shape[-1])
    visible = keys <= torch.tensor(trace.early)[:, None]
    kept, readable = drop_sinks(rows, visible, keys == 0)
    before = torch.tensor(trace.mentions) < torch.tensor(trace.refine)[:, None]
    even = torch.arange(len(trace.mentions)) % 2 == 0
    values: dict[str, Any] = {
        "kurtosis": kurtosis(kept, readable, minimum_keys=MINIMUM_KEYS),
        "cosine": anchor_alignment(early_writes, anchor),
        "loop": loop_back(query, key, (before & even)[None], (before & ~even)[None]),
        "help": helpfulness(refine_writes, gradient),
    }
    return {name: value.nanmean(-1)[0] for name, value in values.items()}


def read_outs(model: Any, h_final: Tensor, trace: MadeUp) -> tuple[Tensor, Tensor]:
    """Anchor [d]; gradient of the margin [R, d] at `h_final`, what the final norm gets [R, d]."""
    rows, gain = model.lm_head.weight, model.model.norm.weight
    anchor = (rows[list(trace.anchors)].mean(0) - rows.mean(0)) * gain
    weighted = (rows[trace.target] - rows[trace.foil]) * gain
    scale = (h_final.square().mean(-1, keepdim=True) + model.config.rms_norm_eps).sqrt()
    along = (h_final * weighted).sum(-1, keepdim=True)
    return anchor, weighted / scale - h_final * along / (h_final.shape[-1] * scale**3)

"""Pooled attention rows at decision events; teacher and student go through the same functions.

Shapes: B sequences, V event slots, K keys that are compared (see `mechanisms`), T keys on the
padded axis, F families of events, L layers, H heads.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from mechdistill.distil.mechanisms import Slots
from mechdistill.heads.coarse import drop_sinks
from mechdistill.models.tap import LayerRecord, Tap


def event_tap(weights: Tensor, positions: Tensor) -> Tap:
    """Reads rows of all layers with a head of some weight [F, L, H] at the positions [B, V]."""
    layers = weights.any(-1).any(0).nonzero().flatten().tolist()
    return Tap(queries=positions, layers=frozenset(layers))


def event_rows(
    records: Mapping[int, LayerRecord], weights: Tensor, family: Tensor, slots: Slots
) -> Tensor:
    """abar_q = sum_h w_h alpha^h_q at each event, without sinks, over the keys that are compared.

    Args:
        records: by layer, of a tap at the events.
        weights: of heads, by family [F, L, H].
        family: of each event [B, V]; -1 = unused slot.
        slots: of the batch: which keys are sinks, and which belong together.

    Returns:
        [B, V, K], each adding to one; zeros in unused slots.
    """
    chosen = weights[family.clamp(min=0)] * (family >= 0)[..., None, None]
    rows = torch.stack(
        [
            torch.einsum("bhqk,bqh->bqk", record.rows, chosen[:, :, layer])
            for layer, record in records.items()
        ]
    ).sum(0)
    # layers may have windows of their own: a key counts where some head of the pool may see it
    visible = torch.stack(
        [
            record.visible & chosen[:, :, layer].any(-1, keepdim=True)
            for layer, record in records.items()
        ]
    ).any(0)
    kept, _ = drop_sinks(slots.comparable(rows), slots.comparable_keys(visible), slots.sink_keys())
    return kept

"""Heads whose attention is compared at decision events: V09 of the paper's second version."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import torch
from torch import Tensor

from mechdistill.distil.mechanisms import PooledHeads
from mechdistill.heads.pools import Pools
from mechdistill.traces.decision_events import FAMILIES

EFFECTS = ("kind", "segment", "layer", "head", "excess", "above_null")
PHASE_OF_KIND: Mapping[str, int] = {"region": 1, "within": 2, "departure": 2}
"""The student's pool at a kind of decision (ours): its heads cannot be tested on decisions that it
does not take before it is trained, so the pools that its own scores choose stand in."""


def causal_weights(effects: pd.DataFrame, *, layers: int, heads: int, size: int) -> Tensor:
    """Weights of the teacher's causal heads, by family (ours: their effect beyond both nulls).

    Args:
        effects: of `mechdistill.patching.calibration.calibrate`, of a model with that many layers,
            and heads a layer.
        size: the most heads of a family, those of largest effect beyond null.

    Returns:
        [families, layers, heads], adding to one in each family; zeros where no head counts.
    """
    weights = torch.zeros(len(FAMILIES), layers, heads)
    counting = effects[effects["above_null"].astype(bool) & (effects["excess"] > 0)]
    for (kind, segment), rows in counting.groupby(["kind", "segment"], sort=False):
        top = rows.sort_values(["excess", "layer", "head"], ascending=[False, True, True])[:size]
        shares = top["excess"] / top["excess"].sum()
        family = FAMILIES.index((kind, segment))
        for layer, head, share in zip(top["layer"], top["head"], shares):
            weights[family, int(layer), int(head)] = float(share)
    return weights


def pooled_weights(pools: Pools, *, layers: int, heads: int) -> Tensor:
    """Weights of a student's pools, by family: [families, layers, heads], zeros of an empty one."""
    pooled = PooledHeads.of(pools, layers, heads)
    of_phase = {1: pooled.coarse, 2: pooled.refine}
    return torch.stack([of_phase[PHASE_OF_KIND[kind]] for kind, _ in FAMILIES])

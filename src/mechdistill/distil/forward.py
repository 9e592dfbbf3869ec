"""One forward pass over a training batch: logits where they count, and what the tap read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mechdistill.distil.batch import TrainingBatch
from mechdistill.models.read_out import logits_where
from mechdistill.models.residuals import reading_residuals
from mechdistill.models.tap import LayerRecord, Tap


@dataclass(frozen=True)
class ForwardPass:
    """Shapes as in `batch`; d is the width of the residual stream."""

    logits: Tensor
    """[N, V], of the predicted tokens."""
    records: dict[int, LayerRecord]
    """By layer; empty without a tap."""
    final_residual: Tensor | None
    """h_final at the refinement slots [B, R, d], detached; None without a tap."""
    hidden: Tensor
    """h_final [B, T, d], what the last layer leaves, its graph attached."""


def run(model: Any, batch: TrainingBatch, tap: Tap | None = None) -> ForwardPass:
    """Teacher-forced pass. Logits are computed where a token is predicted."""
    padded, at = batch.padded, (batch.row, batch.position)
    with reading_residuals(model) as stream:
        logits = logits_where(model, padded.ids, at, attention_mask=padded.mask, tap=tap)
    if tap is None:
        return ForwardPass(logits, {}, None, stream.final)
    residual = stream.final.detach()
    slots = batch.slots.refine.clamp(min=0)[..., None].expand(-1, -1, residual.shape[-1])
    return ForwardPass(logits, tap.record, residual.gather(1, slots), stream.final)

"""One forward pass over a training batch: logits where they count, and what the tap read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mechdistill.distil.batch import TrainingBatch
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
    """Teacher-forced pass. Logits are computed from the first predicted position on."""
    first = batch.first_predicting
    kept = batch.padded.ids.shape[1] - first
    with reading_residuals(model) as stream:
        output = model(
            batch.padded.ids,
            attention_mask=batch.padded.mask,
            tap=tap,
            use_cache=False,
            logits_to_keep=kept,
        )
    logits = output.logits[batch.row, batch.position - first]
    if tap is None:
        return ForwardPass(logits, {}, None, stream.final)
    residual = stream.final.detach()
    at = batch.slots.refine.clamp(min=0)[..., None].expand(-1, -1, residual.shape[-1])
    return ForwardPass(logits, tap.record, residual.gather(1, at), stream.final)

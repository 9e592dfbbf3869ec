"""Control: L_CoT and a loss on the decision margin itself, at the refinement positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn.functional import softplus

from mechdistill.distil.batch import TrainingBatch
from mechdistill.distil.losses import example_mean
from mechdistill.distil.method import StepInputs
from mechdistill.distil.scaled import ScaledMethod
from mechdistill.models.batching import pad_right


class VanillaMargin(ScaledMethod):
    """L_CoT + lambda_P2 softplus(-margin) of each refinement position's target and near-miss.

    It gets the labels that enter phase 2 of `mech`, at the same positions and with the same weight,
    but no head is looked at: a gain that it shares comes from the labels, not from the mechanism.
    """

    name = "vanilla_margin"
    parameters = ("distil.lambda_kl", "distil.lambda_p2")
    tuned_as = "mech"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._lambda = float(settings["distil.lambda_p2"])

    def weight(self, term: str) -> float:
        """That of phase 2."""
        return self._lambda

    def positions(self, batch: TrainingBatch) -> dict[str, float]:
        """Examples with a refinement position."""
        return {"margin": float(sum(bool(sequence.refine) for sequence in batch.sequences))}

    def terms(self, step: StepInputs) -> dict[str, Tensor]:
        """Mean over positions, then examples."""
        logits = step.passed.logits
        rows = pad_right(_rows(step), -1, logits.device)
        used = rows >= 0
        pair = (ids.to(logits.device) for ids in step.batch.pair())
        targets, foils = (ids.clamp(min=0)[..., None] for ids in pair)
        logits = logits[rows.clamp(min=0)]
        margin = (logits.gather(-1, targets) - logits.gather(-1, foils))[..., 0]
        return {"margin": example_mean(softplus(-margin), used)}


def _rows(step: StepInputs) -> list[list[int]]:
    """Row of each refinement position among the batch's predicted tokens, by sequence."""
    found, first = [], 0
    for sequence in step.batch.sequences:
        row = {position: first + i for i, position in enumerate(sequence.predicting)}
        found.append([row[at.query] for at in sequence.refine])
        first += len(sequence.predicting)
    return found

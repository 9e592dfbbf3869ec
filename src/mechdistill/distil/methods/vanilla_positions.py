"""Control for where the mechanistic losses act: L_CoT with more weight on the same positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mechdistill.distil.method import Method
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.traces.parse import Trace


class VanillaPositions(Method):
    """The tokens predicted at early and refinement positions weigh more in the token mean.

    It gets the positions that `mech` gets, but no signal from inside the teacher: a gain that it
    shares comes from emphasis, not from mechanism.
    """

    name = "vanilla_positions"
    parameters = ("distil.lambda_kl", "distil.position_weight")
    tuned_as = "vanilla"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._emphasis = float(settings["distil.position_weight"])

    def prepare(self, traces: Sequence[Trace]) -> list[TrainingSequence]:
        """Whole traces with weights."""
        return [self._weighted(sequence) for sequence in super().prepare(traces)]

    def _weighted(self, sequence: TrainingSequence) -> TrainingSequence:
        chosen = {*sequence.early, *(at.query for at in sequence.refine)}
        weights = tuple(self._emphasis if p in chosen else 1.0 for p in sequence.predicting)
        return replace(sequence, weights=weights)

"""The mechanistic terms as part of a method: Eqs. 5 and 6 beside L_CoT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from mechdistill.distil.batch import TrainingBatch
from mechdistill.distil.losses import COARSE_TERMS, REFINE_TERMS, coarse_terms, refine_terms
from mechdistill.distil.mechanisms import PooledHeads, phase_signals
from mechdistill.distil.method import StepInputs, Student
from mechdistill.distil.placing import placed
from mechdistill.distil.scaled import ScaledMethod
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.models.read_out import ReadOut, token_rows
from mechdistill.models.tap import Tap


class MechanisticMethod(ScaledMethod):
    """L_CoT + lambda_P1 L_P1 + lambda_P2 L_P2, each of the six terms over its value at step 0.

    Gold labels enter L_P1 through the anchor and L_P2 through the margin's pair: information that
    plain distillation does not get. A method that leaves something out keeps all weights.

    Args:
        settings: value of each key in `parameters`.
    """

    phases: ClassVar[tuple[int, ...]] = (1, 2)
    """Those that are trained; `parameters` holds the lambda of each."""
    without: ClassVar[str] = ""
    """A term that is left out (see `mechdistill.distil.losses`); "" leaves out none."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._lambdas = {p: float(settings[f"distil.lambda_p{p}"]) for p in self.phases}
        self._empty: list[tuple[int, str]] = []

    def start(self, student: Student, sequences: Sequence[TrainingSequence]) -> None:
        """Freeze what the student's own read-out says at step 0: anchors, norm and pairs' rows.

        Were they trained, the student could lower the loss by turning the read-out towards what
        its heads write.
        """
        config = student.model.config
        self._model = student.model
        self._pools = PooledHeads.of(
            student.pools, config.num_hidden_layers, config.num_attention_heads
        )
        self._margin_scale = student.pools.margin_std
        self._minimum_keys = student.minimum_keys
        self._anchors = student.anchors
        self._pairs = _frozen_pairs(student.model, sequences)
        self._read_out = ReadOut.of(student.model).frozen()
        self._empty = _empty_pools(student, self._lambdas)
        for phase, _ in self._empty:
            self._lambdas.pop(phase, None)
        self._pools = self._pools.only(self._lambdas)

    def tap(self, batch: TrainingBatch) -> Tap | None:
        """Rows, queries, keys and mixed values of the pools' layers at the phases' positions."""
        return self._pools.tap(batch.slots) if self._lambdas else None

    def weight(self, term: str) -> float:
        """Lambda of the term's phase."""
        return self._lambdas[int(term[1])]

    def left_out(self) -> tuple[str, ...]:
        """Phases without heads."""
        return tuple(f"phase {phase}: the {whose}'s pool is empty" for phase, whose in self._empty)

    def positions(self, batch: TrainingBatch) -> dict[str, float]:
        """Examples with an early position (phase 1) and with a refinement position (phase 2)."""
        if not self._lambdas:
            return {}
        with_early, with_refine = (
            float((slots >= 0).any(-1).sum()) for slots in (batch.slots.early, batch.slots.refine)
        )
        found = dict.fromkeys(COARSE_TERMS, with_early) if 1 in self._lambdas else {}
        found |= dict.fromkeys(REFINE_TERMS, with_refine) if 2 in self._lambdas else {}
        return {name: examples for name, examples in found.items() if name != self.without}

    def terms(self, step: StepInputs) -> dict[str, Tensor]:
        """The trained terms of a batch."""
        if step.passed.final_residual is None or step.signals is None:
            return {}
        batch, device = step.batch, step.passed.hidden.device
        pairs = pad_sequence([self._pairs[name] for name in batch.examples], True).to(device)
        read_out = placed(self._read_out, device)
        coarse, refine = phase_signals(
            self._model,
            step.passed.records,
            placed(self._pools, device),
            batch.slots,
            anchors=torch.stack([self._anchors[name] for name in batch.examples]).to(device),
            gradients=read_out.pair_gradient(step.passed.final_residual, *pairs.unbind(2)),
            margin_scale=self._margin_scale,
            minimum_keys=self._minimum_keys,
        )
        used = {1: batch.slots.early >= 0, 2: batch.slots.refine >= 0}
        terms: dict[str, Tensor] = {}
        if 1 in self._lambdas:
            terms |= coarse_terms(step.signals.coarse, coarse, used[1])
        if 2 in self._lambdas:
            terms |= refine_terms(step.signals.refine, refine, used[2])
        return {name: value for name, value in terms.items() if name != self.without}


def _empty_pools(student: Student, phases: Iterable[int]) -> list[tuple[int, str]]:
    """Phases that cannot be trained, with whose pool has no head."""
    sizes = {
        "teacher": student.teacher_pool_sizes,
        "student": {phase: len(student.pools.of(phase)) for phase in (1, 2)},
    }
    return [(phase, whose) for phase in phases for whose in sizes if sizes[whose][phase] == 0]


@torch.no_grad()
def _frozen_pairs(model: Any, sequences: Sequence[TrainingSequence]) -> dict[str, Tensor]:
    """Unembedding rows of each refinement position's target and foil: [max(R, 1), 2, d]."""
    return {
        # one row of padding where there is no position: batches have at least one slot
        sequence.example: token_rows(
            model,
            torch.tensor([(at.target, at.foil) for at in sequence.refine] or [(-1, -1)]),
        ).clone()
        for sequence in sequences
    }

"""Distillation of one student as what the trainer trains for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch

from mechdistill.distil.batch import TrainingBatch, collate, collate_signals, collate_tokens
from mechdistill.distil.budget import Spent
from mechdistill.distil.forward import run
from mechdistill.distil.history import Term
from mechdistill.distil.method import Method, StepInputs
from mechdistill.distil.order import DataOrder
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.distil.targets import Targets

MEASURED_STEPS = 4
"""Steps whose batches measure the terms at step 0: one batch of a heavy-tailed term is too few."""


class Distillation:
    """Batches of a method's sequences against the cached teacher.

    Args:
        model: the student; no teacher is needed.
        method: started.
        sequences: what `method.prepare` gave.
        targets: of all their examples.
        order: which sequences a step sees.
        pad_id, special_ids: of the tokenizer.
    """

    def __init__(
        self,
        model: Any,
        method: Method,
        sequences: Sequence[TrainingSequence],
        targets: Targets,
        order: DataOrder,
        pad_id: int,
        special_ids: Collection[int],
    ) -> None:
        self._model, self._method = model, method
        self._sequences, self._targets = sequences, targets.examples
        self._order, self._pad_id, self._special_ids = order, pad_id, special_ids

    def begin(self) -> Spent:
        """Let the method measure what it needs on the first steps' batches, at initial weights."""
        tokens = 0

        def first_steps() -> Iterator[StepInputs]:
            nonlocal tokens
            for number in range(MEASURED_STEPS):
                step = self._inputs(number)
                tokens += step.batch.tokens
                yield step

        with torch.no_grad():
            self._method.measure(first_steps())  # a method that measures nothing runs nothing
        return Spent(forward_tokens=tokens)

    def step(self, number: int) -> tuple[dict[str, Term], Spent]:
        """The method's terms on the step's batch."""
        step = self._inputs(number)
        return self._method.loss(step), _cost(step.batch)

    def state(self) -> dict[str, Any]:
        """The method's."""
        return self._method.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """The method's."""
        self._method.restore(state)

    def _inputs(self, number: int) -> StepInputs:
        chosen = [self._sequences[place] for place in self._order.batch(number)]
        batch = collate(chosen, self._pad_id, self._special_ids)
        tap = self._method.tap(batch)
        signals = collate_signals(chosen, self._targets, batch.slots) if tap else None
        tokens = collate_tokens(chosen, self._targets)
        return StepInputs(batch, tokens, signals, run(self._model, batch, tap))


def _cost(batch: TrainingBatch) -> Spent:
    return Spent(
        steps=1,
        sequences=len(batch.sequences),
        target_tokens=len(batch.labels),
        forward_tokens=batch.tokens,
    )

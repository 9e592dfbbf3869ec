"""Distillation of one student as what the trainer trains for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor

from mechdistill.distil.batch import (
    TeacherSignals,
    TeacherTokens,
    TrainingBatch,
    collate,
    collate_signals,
    collate_tokens,
)
from mechdistill.distil.budget import Spent
from mechdistill.distil.engine import Engine, Part
from mechdistill.distil.forward import run
from mechdistill.distil.history import Term
from mechdistill.distil.method import Method, StepInputs, WholeBatch
from mechdistill.distil.order import DataOrder
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.distil.targets import Targets

MEASURED_STEPS = 4
"""Steps whose batches measure the terms at step 0: one batch of a heavy-tailed term is too few."""


@dataclass(frozen=True)
class _Collated:
    """What one forward pass takes."""

    batch: TrainingBatch
    tokens: TeacherTokens
    signals: TeacherSignals | None


class Distillation:
    """Batches of a method's sequences against the cached teacher.

    Args:
        model: the student; no teacher is needed.
        method: started.
        sequences: what `method.prepare` gave.
        targets: of all their examples.
        order: which sequences a step sees.
        pad_id, special_ids: of the tokenizer.
        engine: holds the model; says which parts of a batch fall to this process.
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
        engine: Engine,
    ) -> None:
        self._model, self._method, self._engine = model, method, engine
        self._sequences, self._targets = sequences, targets.examples
        self._order, self._pad_id, self._special_ids = order, pad_id, special_ids

    def begin(self) -> Spent:
        """Let the method measure what it needs on the first steps' batches, at initial weights."""
        tokens = 0

        def first_batches() -> Iterator[WholeBatch]:
            nonlocal tokens
            for number in range(MEASURED_STEPS):
                tokens += self._cost(number).forward_tokens
                yield self._batch(number)

        self._method.measure(first_batches())  # a method that measures nothing runs nothing
        return Spent(forward_tokens=tokens)

    def step(self, number: int) -> tuple[Sequence[Part], Spent]:
        """The method's terms on the parts of the step's batch."""
        batch = self._batch(number)
        if not self._method.knows(batch.whole):  # a term that no batch before had
            self._method.measure([batch])
        return batch.parts(), self._cost(number)

    def state(self) -> dict[str, Any]:
        """The method's."""
        return self._method.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the method's state."""
        self._method.restore(state)

    def _batch(self, number: int) -> _Batch:
        chosen = self._engine.parts(self._order.batch(number))
        parts = [self._collated([self._sequences[place] for place in own]) for own in chosen]
        sizes = [self._method.sizes(part.batch, part.tokens) for part in parts]
        own = Counter[str]()
        for size in sizes:
            own.update(size)
        whole = {name: size for name, size in self._engine.total(own).items() if size}
        return _Batch(self._model, self._method, self._engine, parts, sizes, whole)

    def _collated(self, chosen: Sequence[TrainingSequence]) -> _Collated:
        batch = collate(chosen, self._pad_id, self._special_ids)
        tapped = self._method.tap(batch) is not None
        return _Collated(
            batch,
            collate_tokens(chosen, self._targets),
            collate_signals(chosen, self._targets, batch.slots) if tapped else None,
        )

    def _cost(self, number: int) -> Spent:
        chosen = [self._sequences[place] for place in self._order.batch(number)]
        return Spent(
            steps=1,
            sequences=len(chosen),
            target_tokens=sum(len(sequence.predicting) for sequence in chosen),
            forward_tokens=sum(len(sequence.tokens) for sequence in chosen),
        )


class _Batch:
    """A step's batch: the parts of it that fall to this process."""

    def __init__(
        self,
        model: Any,
        method: Method,
        engine: Engine,
        parts: Sequence[_Collated],
        sizes: Sequence[Mapping[str, float]],
        whole: Mapping[str, float],
    ) -> None:
        self._model, self._method, self._engine = model, method, engine
        self._parts = parts
        self._shares = [
            {name: size[name] / whole[name] for name in size if name in whole} for size in sizes
        ]
        self.whole = whole
        """What each term is a mean over, in all parts; without those that have nothing."""

    def mean(self, terms: Callable[[StepInputs], Mapping[str, Tensor]]) -> dict[str, float]:
        """See `WholeBatch`."""
        means = dict.fromkeys(self.whole, 0.0)
        found: set[str] = set()
        for part, shares in zip(self._parts, self._shares):
            work = partial(self._values, part, shares, terms)
            values = self._engine.read(work)
            for name in values.keys() & shares.keys():
                means[name] += float(values[name]) * shares[name]
                found.add(name)
        return self._engine.total({name: means[name] for name in sorted(found)})

    def parts(self) -> list[Part]:
        """The forward pass and the loss of each part, to be called in this order."""
        return [
            partial(self._loss, part, shares) for part, shares in zip(self._parts, self._shares)
        ]

    def _loss(self, part: _Collated, shares: Mapping[str, float]) -> dict[str, Term]:
        terms = self._method.loss(self._inputs(part, shares))
        return {name: term._replace(share=shares.get(name, 1.0)) for name, term in terms.items()}

    def _values(
        self,
        part: _Collated,
        shares: Mapping[str, float],
        terms: Callable[[StepInputs], Mapping[str, Tensor]],
    ) -> Mapping[str, Tensor]:
        return terms(self._inputs(part, shares))

    def _inputs(self, part: _Collated, shares: Mapping[str, float]) -> StepInputs:
        there = self._engine.place(part)
        passed = run(self._model, there.batch, self._method.tap(there.batch))
        return StepInputs(there.batch, there.tokens, there.signals, passed, shares)

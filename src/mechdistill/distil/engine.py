"""Who holds the weights of a training and changes them: one process, or several together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from mechdistill.distil.history import Term
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import ScheduledOptimiser

T = TypeVar("T")

Part = Callable[[], Mapping[str, Term]]
"""The forward pass of one part of a batch, and its terms."""


class Update(NamedTuple):
    """What a step did."""

    norm: float
    """Of the gradient, before clipping."""
    rate: float
    """Of learning."""


class Engine(Protocol):
    """The weights, the optimiser's state and where both are kept."""

    speaks: bool
    """Whether this process tells how far the training is."""

    def restore(self) -> tuple[int, dict[str, Any]]:
        """Take up a saved state: finished steps and notes, or (0, {}) where there is none."""

    def save(self, step: int, notes: dict[str, Any]) -> None:
        """Keep the state after `step` finished steps; `notes` is what JSON can hold exactly."""

    def discard(self) -> None:
        """Remove what was kept: the training is finished and its result saved elsewhere."""

    def about(self) -> dict[str, Any]:
        """What the record of a training says of how it was run, beyond its parameters."""

    def parts(self, batch: Sequence[T]) -> list[Sequence[T]]:
        """What this process takes of a batch: the sequences of each of its passes."""

    def total(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """Sums over all processes."""

    def place(self, value: T) -> T:
        """The same tensors where the weights are."""

    def read(self, work: Callable[[], T]) -> T:
        """Do work that passes through the model, without gradients."""

    def learn(self, part: Part, number: int) -> tuple[Mapping[str, Term], float]:
        """Add the gradients of one part of step `number` (from 0); its terms and its loss."""

    def update(self, number: int) -> Update | None:
        """Change the weights by the gradients of all parts.

        None: they were too large for the precision and are dropped; the step is to be done again.
        """


class OneProcess:
    """A model in the memory of this process, trained in the format of its weights.

    Args:
        model: at its initial weights, also when a checkpoint is there to go on from.
        optimiser: of its parameters.
        checkpoint: where the state is kept; not removed at the end, since the result is not saved
            yet.
        clip: largest gradient norm.
    """

    speaks = True

    def __init__(
        self, model: nn.Module, optimiser: ScheduledOptimiser, checkpoint: Checkpoint, clip: float
    ) -> None:
        self._model, self._optimiser = model, optimiser
        self._checkpoint, self._clip = checkpoint, clip

    def restore(self) -> tuple[int, dict[str, Any]]:
        """See `Engine`."""
        return self._checkpoint.restore(self._model, self._optimiser)

    def save(self, step: int, notes: dict[str, Any]) -> None:
        """See `Engine`."""
        self._checkpoint.save(step, self._model, self._optimiser, notes)

    def discard(self) -> None:
        """See `Engine`."""
        self._checkpoint.discard()

    def about(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def parts(self, batch: Sequence[T]) -> list[Sequence[T]]:
        """The batch."""
        return [batch]

    def total(self, amounts: Mapping[str, float]) -> dict[str, float]:
        """The amounts."""
        return dict(amounts)

    def place(self, value: T) -> T:
        """The value."""
        return value

    def read(self, work: Callable[[], T]) -> T:
        """See `Engine`."""
        with torch.no_grad():
            return work()

    def learn(self, part: Part, number: int) -> tuple[Mapping[str, Term], float]:
        """See `Engine`."""
        terms = part()
        loss = weighed(terms)
        loss.backward()  # type: ignore[no-untyped-call]
        return terms, loss.item()

    def update(self, number: int) -> Update:
        """See `Engine`; weights are left as they are where the norm is not finite."""
        norm = float(nn.utils.clip_grad_norm_(self._model.parameters(), self._clip))
        return Update(norm, self._optimiser.step(number) if math.isfinite(norm) else 0.0)


def weighed(terms: Mapping[str, Term]) -> Tensor:
    """The loss of a part: the sum of its terms."""
    parts = [term.value * (term.weight * term.share) for term in terms.values()]
    return torch.stack(parts).sum()

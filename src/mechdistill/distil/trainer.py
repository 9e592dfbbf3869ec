"""The training loop that base students and students share: steps, checkpoints, history.

A training that is killed and started again ends in the same weights, bit for bit: everything that
a step depends on is either a function of the step's number or in the checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from mechdistill.distil.budget import Spent, Stopwatch
from mechdistill.distil.history import History, Term
from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import Optimiser
from mechdistill.progress import track


@dataclass(frozen=True)
class TrainingSettings:
    """The section `distil.training` or `distil.base`."""

    steps: int
    batch_size: int
    learning_rate: float
    """Peak rate of Muon."""
    adamw_learning_rate: float
    warmup_steps: int
    clip: float
    """Largest gradient norm."""
    checkpoint_every: int

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> TrainingSettings:
        """From the parameters' section, all of whose keys are needed."""
        return cls(**section)


class Objective(Protocol):
    """What is trained for."""

    def begin(self) -> Spent:
        """Called before step 0 of a training that does not resume; what that cost."""

    def step(self, number: int) -> tuple[dict[str, Term], Spent]:
        """The loss of a step (from 0) and what it processes."""

    def state(self) -> dict[str, Any]:
        """What `begin` found, as JSON holds it."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave."""


def train(
    model: nn.Module,
    objective: Objective,
    settings: TrainingSettings,
    checkpoint: Checkpoint,
    what: str,
) -> tuple[History, Spent]:
    """Train `model` in place to the last step.

    Args:
        model: at its initial weights, also when a checkpoint is there to go on from.
        objective: gives the loss of each step.
        settings: numbers of the training.
        checkpoint: where to go on and where to leave the state; not removed at the end, since the
            result is not saved yet.
        what: name of a step in the progress report.

    Returns:
        What happened at each step, and what was spent over all interrupted runs.

    Raises:
        FloatingPointError: a gradient is not finite.
    """
    optimiser = Optimiser(
        model,
        learning_rate=settings.learning_rate,
        adamw_learning_rate=settings.adamw_learning_rate,
        steps=settings.steps,
        warmup_steps=settings.warmup_steps,
    )
    watch = Stopwatch()
    done, notes = checkpoint.restore(model, optimiser)
    history, spent = History.of(notes.get("history")), Spent.of(notes.get("spent"))
    if done:
        objective.restore(notes["objective"])
    else:
        spent += objective.begin()
    steps = range(done, settings.steps)
    for number in track(steps, what, settings.steps, done=done):
        terms, cost = objective.step(number)
        total = _total(terms)
        total.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), settings.clip))
        if not math.isfinite(norm):
            raise FloatingPointError(f"{what} {number}: the gradient norm is {norm}")
        rate = optimiser.step(number)
        history.add(number, terms, total, norm, rate)
        spent += cost
        finished = number + 1
        if finished % settings.checkpoint_every == 0 or finished == settings.steps:
            now = spent + watch.lap()
            spent = now
            checkpoint.save(
                finished,
                model,
                optimiser,
                {
                    "history": history.content(),
                    "spent": now.content(),
                    "objective": objective.state(),
                },
            )
    return history, spent


def _total(terms: Mapping[str, Term]) -> Tensor:
    parts = [term.value * term.weight for term in terms.values()]
    return torch.stack(parts).sum()

"""The training loop that base students and students share: steps, checkpoints, history.

A training that is killed and started again ends in the same weights, bit for bit: everything that
a step depends on is either a function of the step's number or in the checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import nn

from mechdistill.distil.budget import Spent, Stopwatch
from mechdistill.distil.engine import Engine, Part, Update
from mechdistill.distil.history import History, Reading
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
    weights: str
    """Format of weights, gradients and the optimiser's state."""

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> TrainingSettings:
        """From the parameters' section, all of whose keys are needed."""
        return cls(**section)


def optimiser_of(model: nn.Module, settings: TrainingSettings) -> Optimiser:
    """Muon and AdamW over the weights of a model, at the rates of a training."""
    return Optimiser(
        model,
        learning_rate=settings.learning_rate,
        adamw_learning_rate=settings.adamw_learning_rate,
        steps=settings.steps,
        warmup_steps=settings.warmup_steps,
    )


class Objective(Protocol):
    """What is trained for."""

    def begin(self) -> Spent:
        """Called before step 0 of a training that does not resume; what that cost."""

    def step(self, number: int) -> tuple[Sequence[Part], Spent]:
        """The parts of a step (from 0) that fall to this process, and what the step processes."""

    def state(self) -> dict[str, Any]:
        """What `begin` found, as JSON holds it."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave."""


def train(
    engine: Engine, objective: Objective, settings: TrainingSettings, what: str
) -> tuple[History, Spent]:
    """Train a model in place to the last step.

    Args:
        engine: holds the model.
        objective: gives the loss of each step.
        settings: numbers of the training.
        what: name of a step in the progress report.

    Returns:
        What happened at each step, and what was spent over all interrupted runs.

    Raises:
        FloatingPointError: a gradient is not finite.
    """
    watch = Stopwatch()
    done, notes = engine.restore()
    history, spent = History.of(notes.get("history")), Spent.of(notes.get("spent"))
    if done:
        objective.restore(notes["objective"])
    else:
        spent += objective.begin()
    steps = range(done, settings.steps)
    for number in track(steps, what, settings.steps, done=done) if engine.speaks else steps:
        terms, total, update, cost = _take_step(engine, objective, number)
        if not math.isfinite(update.norm):
            raise FloatingPointError(f"{what} {number}: the gradient norm is {update.norm}")
        history.add(number, terms, total, update.norm, update.rate)
        spent += cost
        finished = number + 1
        if finished % settings.checkpoint_every == 0 or finished == settings.steps:
            spent += watch.lap()
            engine.save(
                finished,
                {
                    "history": history.content(),
                    "spent": spent.content(),
                    "objective": objective.state(),
                },
            )
    return history, spent


def _take_step(
    engine: Engine, objective: Objective, number: int
) -> tuple[dict[str, Reading], float, Update, Spent]:
    """Terms on the whole batch, the loss, what the step did and what it cost."""
    while True:
        parts, cost = objective.step(number)
        values: dict[str, float] = {}
        weights: dict[str, float] = {}
        loss = 0.0
        for part in parts:
            terms, own = engine.learn(part, number)
            loss += own
            for name, term in terms.items():
                values[name] = values.get(name, 0.0) + term.value.item() * term.share
                weights[name] = term.weight
        update = engine.update(number)
        if update is not None:
            break
    whole = engine.total(values)
    readings = {name: Reading(whole[name], weight) for name, weight in weights.items()}
    return readings, engine.total({"loss": loss})["loss"], update, cost

"""The loop of a teacher's training: steps, validation, learning curve, checkpoints.

A training that was killed goes on from its checkpoint and ends in the same weights, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from torch import nn

from mechdistill.models.checkpoints import Checkpoint
from mechdistill.models.optimiser import ScheduledOptimiser
from mechdistill.progress import track

Validate = Callable[[nn.Module], Mapping[str, float]]
"""Scores of a model in evaluation mode, by name."""


class Course(Protocol):
    """How long a training lasts, and what happens on the way."""

    @property
    def steps(self) -> int:
        """Steps in all."""

    @property
    def clip(self) -> float:
        """Largest gradient norm."""

    @property
    def validate_every(self) -> int:
        """Steps between two validations; the last step is followed by one too."""

    @property
    def checkpoint_every(self) -> int:
        """Steps between two checkpoints."""


def train_validated(
    model: nn.Module,
    trained: nn.Module,
    optimiser: ScheduledOptimiser,
    course: Course,
    checkpoint: Checkpoint,
    add_gradients: Callable[[int], float],
    validate: Validate,
    *,
    scored_at_start: bool,
    what: str,
) -> pd.DataFrame:
    """Train and return the learning curve; the model is left in training mode.

    Args:
        model: is validated.
        trained: holds the parameters that are clipped and kept in checkpoints.
        add_gradients: of a step, by its number; gives the step's training loss.
        scored_at_start: whether the curve begins with the scores before the first step, as step 0.
        what: names the loop in the progress lines.

    Returns:
        step, metric, value: the mean training loss since the last row, and the scores.
    """
    first, notes = checkpoint.restore(trained, optimiser)
    rows: list[list[Any]] = notes.get("rows", [])
    losses: list[float] = notes.get("losses", [])
    if scored_at_start and not rows:
        rows += _scores(model, validate, 0)
    model.train()
    for step in track(range(first, course.steps), what, course.steps, done=first):
        losses.append(add_gradients(step))
        torch.nn.utils.clip_grad_norm_(trained.parameters(), course.clip)
        optimiser.step(step)
        finished = step + 1
        if finished % course.validate_every == 0 or finished == course.steps:
            rows.append([finished, "loss", float(np.mean(losses))])
            rows += _scores(model, validate, finished)
            losses = []
        if finished % course.checkpoint_every == 0:
            checkpoint.save(finished, trained, optimiser, {"rows": rows, "losses": losses})
    return pd.DataFrame(rows, columns=["step", "metric", "value"])


def _scores(model: nn.Module, validate: Validate, step: int) -> Iterable[list[Any]]:
    model.eval()
    scores = validate(model)
    model.train()
    return [[step, name, value] for name, value in scores.items()]

"""Simulators: models that answer a question with a given reasoning at hand (`evaluate.las`).

One simulator a study, trained on the teacher's reasoning and frozen: never on that of a student
that it scores. While it trains, the question or the reasoning is hidden from it at random, so that
neither is new to it when it is shown alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor


class Shown(NamedTuple):
    """What a simulator sees: None is hidden."""

    question: str | None
    reasoning: str | None


class Lesson(NamedTuple):
    """A question, the teacher's reasoning on it, and the codes to answer."""

    question: str
    reasoning: str
    answer: tuple[str, ...]


class Simulator(Protocol):
    """A trained simulator."""

    def answer(self, shown: Sequence[Shown]) -> list[tuple[str, ...]]:
        """Codes of the label space for each, the surest first."""
        ...

    def contents(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Tensors and text from which it can be made again; `kind` tells which one it is."""
        ...


@dataclass(frozen=True)
class SimulatorSettings:
    """The section `evaluate.simulator`."""

    kind: str
    checkpoint: Mapping[str, Any] | None
    """Of a T5; the encoder simulator reads through the study's sentence encoder."""
    notes: int
    """Training notes, the first ones, whose teacher's reasoning it learns from."""
    strip_labels: bool
    """Whether labels are taken out of the reasoning, which else gives the answer away."""
    steps: int
    batch_size: int
    learning_rate: float
    seed: int

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> SimulatorSettings:
        """From the parameters' section, all of whose keys are needed."""
        return cls(**section)


def drawn(
    lessons: Sequence[Lesson], settings: SimulatorSettings
) -> Iterator[list[tuple[int, Shown]]]:
    """Batches of lessons by number: whole, without their reasoning or without their question.

    Every lesson comes once before any comes again; each of the three views has a third.
    """
    rng = np.random.default_rng([settings.seed, 5])
    waiting: list[int] = []
    for _ in range(settings.steps):
        while len(waiting) < settings.batch_size:
            waiting += rng.permutation(len(lessons)).tolist()
        batch, waiting = waiting[: settings.batch_size], waiting[settings.batch_size :]
        views = rng.integers(0, 3, len(batch))
        yield [(i, _view(lessons[i], int(view))) for i, view in zip(batch, views, strict=True)]


def _view(lesson: Lesson, view: int) -> Shown:
    return Shown(
        None if view == 2 else lesson.question,
        None if view == 1 else lesson.reasoning,
    )

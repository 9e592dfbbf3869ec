"""L_CoT with further terms, each divided by its value at step 0."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from mechdistill.distil.batch import TeacherTokens, TrainingBatch
from mechdistill.distil.history import Term
from mechdistill.distil.method import COT_TERMS, Method, StepInputs, WholeBatch

NEGLIGIBLE = 1e-12
"""A term below this at step 0 is not divided by its value: there is nothing to scale."""


class ScaledMethod(Method):
    """Terms on unlike scales, weighed on one: at step 0 each counts its lambda.

    Args:
        settings: value of each key in `parameters`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._at_start: dict[str, float] = {}

    @abstractmethod
    def terms(self, step: StepInputs) -> dict[str, Tensor]:
        """The terms beside L_CoT, unscaled; one that has no position to look at is 0.

        None may be left out then: where a batch is shared out, all processes must pass through the
        same layers, forwards and backwards, or they wait for each other for ever.
        """

    @abstractmethod
    def positions(self, batch: TrainingBatch) -> dict[str, float]:
        """How many examples of a batch have a position for each of the terms."""

    @abstractmethod
    def weight(self, term: str) -> float:
        """Lambda of a term."""

    def sizes(self, batch: TrainingBatch, tokens: TeacherTokens) -> dict[str, float]:
        """Tokens of L_CoT's terms, and examples of the others."""
        return {**super().sizes(batch, tokens), **self.positions(batch)}

    def knows(self, terms: Iterable[str]) -> bool:
        """Whether the size of each term at the start is known."""
        return all(name in self._at_start or name in COT_TERMS for name in terms)

    def measure(self, batches: Iterable[WholeBatch]) -> None:
        """Value of each term at step 0, or at the first batch that has it.

        The mean over the batches that have the term: a batch without a position says nothing of
        its size.
        """
        values: dict[str, list[float]] = {}
        for batch in batches:
            for name, value in batch.mean(self.terms).items():
                values.setdefault(name, []).append(value)
        means = {name: sum(found) / len(found) for name, found in values.items()}
        self._at_start = {**means, **self._at_start}

    def loss(self, step: StepInputs) -> dict[str, Term]:
        """L_CoT's terms and the scaled ones."""
        found = super().loss(step)
        for name, value in self.terms(step).items():
            if name not in step.shares:  # no part of the batch has a position for it
                continue
            unit = self._at_start[name]
            weight = self.weight(name) / (unit if unit > NEGLIGIBLE else 1.0)
            found[name] = Term(value, weight)
        return found

    def state(self) -> dict[str, Any]:
        """The terms' values at step 0."""
        return {"at_start": self._at_start}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take them up."""
        self._at_start = dict(state["at_start"])

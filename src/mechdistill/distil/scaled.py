"""L_CoT with further terms, each divided by its value at step 0."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from mechdistill.distil.history import Term
from mechdistill.distil.method import Method, StepInputs

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
        """The terms beside L_CoT, unscaled; those that the batch has no position for are absent."""

    @abstractmethod
    def weight(self, term: str) -> float:
        """Lambda of a term."""

    @torch.no_grad()
    def measure(self, steps: Iterable[StepInputs]) -> None:
        """Value of each term at step 0.

        The mean over the batches that have the term: a batch without a position says nothing of
        its size.
        """
        values: dict[str, list[float]] = {}
        for step in steps:
            for name, value in self.terms(step).items():
                values.setdefault(name, []).append(float(value))
        self._at_start = {name: sum(found) / len(found) for name, found in values.items()}

    def loss(self, step: StepInputs) -> dict[str, Term]:
        """L_CoT's terms and the scaled ones."""
        found = super().loss(step)
        for name, value in self.terms(step).items():
            if name not in self._at_start:  # no measured batch had it
                self._at_start[name] = value.item()
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

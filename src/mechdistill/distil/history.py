"""The learning curve: every term of every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


class Term(NamedTuple):
    """One term of a loss on a batch, or on a part of it: it adds weight * share * value."""

    value: Tensor
    weight: float
    share: float = 1.0
    """What the part has of all that the term is a mean over; the shares of all parts add to one."""


class Reading(NamedTuple):
    """What a term was on the whole batch."""

    value: float
    weight: float


class History:
    """One row per step and metric: step, metric, value, weight.

    A term adds value * weight to the loss; `total`, `gradient_norm` (before clipping) and
    `learning_rate` carry no weight.
    """

    def __init__(self, rows: list[list[Any]]) -> None:
        self._rows = rows

    @classmethod
    def of(cls, content: list[list[Any]] | None) -> History:
        """From what `content` gave, or empty."""
        return cls(content or [])

    def add(
        self, step: int, terms: Mapping[str, Reading], total: float, norm: float, rate: float
    ) -> None:
        """Take down a finished step."""
        for name, term in terms.items():
            self._rows.append([step, name, term.value, term.weight])
        for name, value in (
            ("total", total),
            ("gradient_norm", norm),
            ("learning_rate", rate),
        ):
            self._rows.append([step, name, value, None])

    def content(self) -> list[list[Any]]:
        """The rows, as JSON holds them exactly."""
        return self._rows

    def frame(self) -> pd.DataFrame:
        """The rows as a table."""
        import pandas as pd

        frame = pd.DataFrame(self._rows, columns=["step", "metric", "value", "weight"])
        return frame.astype({"step": "int64", "value": "float64", "weight": "float64"})

"""From a generated answer to a ranked list of labels: one way, used by every metric."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import pandas as pd

from mechdistill.data.examples import Example
from mechdistill.traces.parse import Trace


class Normalised(NamedTuple):
    """Labels in the order of their first mention, and how many strings were outside the space."""

    labels: tuple[str, ...]
    outside: int


def normalise(answer: Sequence[str], space: Collection[str]) -> Normalised:
    """Drop repeats, keeping the first, and then what is outside the label space.

    >>> normalise(["I50.21", "J45.21", "I50.21", "X99"], {"I50.21", "J45.21"})
    Normalised(labels=('I50.21', 'J45.21'), outside=1)
    """
    distinct = tuple(dict.fromkeys(answer))
    labels = tuple(label for label in distinct if label in space)
    return Normalised(labels, len(distinct) - len(labels))


def prediction_table(
    traces: Sequence[Trace],
    examples: Sequence[Example],
    space: Collection[str],
    model: str,
    method: str,
    seed: int,
) -> pd.DataFrame:
    """One row an example: gold, predicted, status of the trace, answers outside the space.

    A trace that could not be parsed keeps its row, with what answer it has, mostly none.
    """
    by_example = {trace.example: trace for trace in traces}
    rows = []
    for example in examples:
        trace = by_example[example.example]
        found = normalise(trace.answer, space)
        rows.append(
            {
                "model": model,
                "method": method,
                "seed": seed,
                "example": example.example,
                "gold": list(example.gold),
                "predicted": list(example.counted(found.labels)),
                "status": trace.status,
                "outside_space": found.outside,
            }
        )
    return pd.DataFrame(rows)

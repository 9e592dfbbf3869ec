"""Anchors and near-misses of an example in text space, fixed by the data for every model scored.

Embeddings come from one frozen sentence encoder at unit length; a centroid is their plain mean,
so that no text weighs more than another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.models.text_encoder import TextEncoder

Vectors = npt.NDArray[np.floating[Any]]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TextAnchors:
    """What an example's reasoning is compared with.

    Attributes:
        text: a(x), the anchor names in problem order, "heart failure, asthma".
        anchor: c(x) [d], centroid of the names of the gold regions.
        near: n(x) [d], centroid of the descriptions of the near-misses; nan if there are none.
        gold: [d], centroid of the descriptions of the gold labels, what `near` should lose to.
    """

    example: str
    text: str
    anchor: Vectors
    near: Vectors
    gold: Vectors


def text_anchors(
    examples: Sequence[Example], space: LabelSpace, encoder: TextEncoder
) -> dict[str, TextAnchors]:
    """Anchors of each example, by example id."""

    def names(example: Example) -> list[str]:
        return [space.region(code).name for code in example.regions]

    def descriptions(codes: Iterable[str]) -> list[str]:
        return [space.label(code).description for code in codes]

    # one call for all texts: the encoder is fastest on many
    encoder.encode(
        [
            text
            for example in examples
            for text in names(example) + descriptions(example.near) + descriptions(example.gold)
        ]
    )
    return {
        example.example: TextAnchors(
            example=example.example,
            text=", ".join(names(example)),
            anchor=centroid(encoder.encode(names(example))),
            near=centroid(encoder.encode(descriptions(example.near))),
            gold=centroid(encoder.encode(descriptions(example.gold))),
        )
        for example in examples
    }


def centroid(embeddings: Vectors) -> Array:
    """Mean [d] of rows [n, d]; nan where there are no rows."""
    rows = np.asarray(embeddings, dtype=np.float64)
    return rows.mean(0) if len(rows) else np.full(rows.shape[1], np.nan)


def cosine(rows: Vectors, vector: Vectors) -> Array:
    """Cosines [n] of rows [n, d] with a vector [d]; 0 where either is the zero vector.

    >>> cosine(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 1.0])).round(3)
    array([0.707, 0.   ])
    """
    rows, vector = np.asarray(rows, dtype=np.float64), np.asarray(vector, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=-1) * np.linalg.norm(vector)
    products: Array = rows @ vector / np.where(norms == 0, 1.0, norms)
    return products


def cumulative_mean(values: Vectors) -> Array:
    """Mean of the first k values, for each k."""
    values = np.asarray(values, dtype=np.float64)
    means: Array = np.cumsum(values) / np.arange(1, len(values) + 1)
    return means


def mean_or_nan(values: Vectors) -> float:
    """Mean of the values; nan, without a warning, where there are none."""
    return float(np.mean(values)) if len(values) else float("nan")

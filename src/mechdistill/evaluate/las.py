"""Simulatability: what a student's reasoning tells a simulator about the answer (Eq. 8).

The simulator answers from question and reasoning, from the question alone, and from the reasoning
alone. Two readings, which differ:

| name      | definition                                                                       |
|-----------|----------------------------------------------------------------------------------|
| simple    | Acc(q + r) - Acc(q) (Wang et al. 2023; Eq. 8): nothing is adjusted for leakage    |
| split     | the same within the documents whose reasoning alone gives the answer (leaking)    |
|           | and within the others, then the plain mean of the two (Hase et al. 2020)          |

Accuracy of a set of labels is a document's F1; equality of the sets is given beside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEAKING_FROM = 0.5
"""F1 from the reasoning alone at which it counts as leaking; 1 where the answer is one class."""


class LeakageSplit(NamedTuple):
    """Mean gain of the documents that leak and of those that do not, and the mean of the two.

    nan where a group is empty: nothing is put in its place.
    """

    leaking: float
    others: float
    mean: float
    n_leaking: int


def leaks(reasoning_alone: Array) -> npt.NDArray[np.bool_]:
    """Which documents leak, from accuracies [n] of the simulator that sees the reasoning alone."""
    return reasoning_alone >= LEAKING_FROM


def leakage_split(gain: Array, leaking: npt.NDArray[np.bool_]) -> LeakageSplit:
    """Gains Acc(q + r) - Acc(q) of documents [n], averaged by whether they leak."""
    sums = [part.sum(keepdims=True) for part in split_statistics(gain, leaking)]
    of_leaking, of_others = _group_means(*sums)
    return LeakageSplit(
        float(of_leaking[0]), float(of_others[0]), float(split_mean(*sums)[0]), int(leaking.sum())
    )


def split_statistics(gain: Array, leaking: npt.NDArray[np.bool_]) -> tuple[Array, ...]:
    """What `split_mean` is a function of once summed over documents; undefined gains count nowhere.

    Returns:
        [n] each: gain of the leaking, 1 for each of them, gain of the others, 1 for each of them.
    """
    known = ~np.isnan(gain)
    value = np.where(known, gain, 0.0)
    own, other = known & leaking, known & ~leaking
    return (
        np.where(own, value, 0.0),
        own.astype(np.float64),
        np.where(other, value, 0.0),
        other.astype(np.float64),
    )


def split_mean(gain_leaking: Array, leaking: Array, gain_others: Array, others: Array) -> Array:
    """Unweighted mean of the two groups' mean gains, from sums; nan where a group is empty."""
    of_leaking, of_others = _group_means(gain_leaking, leaking, gain_others, others)
    return (of_leaking + of_others) / 2


def _group_means(
    gain_leaking: Array, leaking: Array, gain_others: Array, others: Array
) -> tuple[Array, Array]:
    return _mean(gain_leaking, leaking), _mean(gain_others, others)


def _mean(total: Array, number: Array) -> Array:
    mean: Array = np.where(number == 0, np.nan, total / np.where(number == 0, 1.0, number))
    return mean

"""Cut a rationale into chunks, by length or by how hard its tokens are (Skip-Thinking's CWT).

A cut is the position of a chunk's first token. Chunks are made of whole steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEAST_GAIN = 1e-4
"""A boundary moves only if the criterion falls by more: ties keep what is there."""
SWEEPS = 3


def average_cuts(units: Sequence[int], end: int, count: int) -> list[int]:
    """First tokens of at most `count` chunks of like length, each at the start of a step.

    Args:
        units: first token of each step, increasing.
        end: behind the last step.
        count: chunks wanted; fewer where there are fewer steps.
    """
    begin = units[0]
    cuts = [0]  # as numbers of steps
    wanted = min(count, len(units))
    for number in range(1, wanted):
        ideal = begin + (end - begin) * number / wanted
        # a step must be left for each chunk that is still to come
        free = range(cuts[-1] + 1, len(units) - (wanted - number) + 1)
        cuts.append(min(free, key=lambda unit: abs(units[unit] - ideal)))
    return [units[unit] for unit in cuts]


def searched_cuts(
    cuts: Sequence[int], units: Sequence[int], end: int, losses: Array, first: int
) -> list[int]:
    """Cuts moved by one step at a time as long as the mean over chunks of their mean loss falls.

    The context of every token is the true text before it, so one forward pass gives all losses and
    any cut is judged by sums over them. (Their total is the same whatever the cuts: only the mean
    of means moves.)

    Args:
        cuts: to start from, as of `average_cuts`.
        units: first token of each step.
        end: behind the last step.
        losses: negative log-likelihood of each token from `first` to `end`.
        first: position of the first of them.
    """
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    place = {unit: number for number, unit in enumerate(units)}
    best = list(cuts)
    value = _mean_of_means(best, end, sums, first)
    for _ in range(SWEEPS):
        moved = False
        for number in range(1, len(best)):
            for step in (-1, 1):
                unit = place[best[number]] + step
                tried = [*best[:number], *units[unit : unit + 1], *best[number + 1 :]]
                if len(tried) < len(best) or sorted(set(tried)) != tried:
                    continue
                other = _mean_of_means(tried, end, sums, first)
                if value - other > LEAST_GAIN:
                    best, value, moved = tried, other, True
        if not moved:
            break
    return best


def _mean_of_means(cuts: Sequence[int], end: int, sums: Array, first: int) -> float:
    edges = np.array([*cuts, end]) - first
    return float(np.mean(np.diff(sums[edges]) / np.diff(edges)))

"""Which examples a training step sees: a function of the seed and the step, nothing else.

A resumed training therefore needs no iterator's state, and all methods of one seed that train on
the same sequences see them in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BUCKET = 8
"""Batches that are sorted by length together: less padding, while batches stay well mixed."""


class DataOrder:
    """Batches of sequence numbers; every epoch is a new shuffle, its incomplete batch left out.

    Args:
        lengths: tokens of each sequence.
        batch_size: sequences a batch; all of them where there are fewer.
        seed: of the run.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        if not lengths:
            raise ValueError("there is no sequence to train on")
        self._lengths = np.asarray(lengths)
        self.batch_size = min(batch_size, len(lengths))
        self._seed = seed
        self._epoch = -1
        self._batches: list[np.ndarray] = []

    def batch(self, step: int) -> list[int]:
        """Sequence numbers of a step, counted from 0."""
        epoch, position = divmod(step, len(self._lengths) // self.batch_size)
        if epoch != self._epoch:
            self._batches, self._epoch = self._shuffled(epoch), epoch
        return [int(number) for number in self._batches[position]]

    def _shuffled(self, epoch: int) -> list[np.ndarray]:
        random = np.random.default_rng([self._seed, epoch])
        numbers = random.permutation(len(self._lengths))
        whole = len(numbers) // self.batch_size * self.batch_size
        width = BUCKET * self.batch_size
        batches: list[np.ndarray] = []
        for start in range(0, whole, width):
            bucket = numbers[start : min(start + width, whole)]
            bucket = bucket[np.argsort(self._lengths[bucket], kind="stable")]
            batches.extend(bucket.reshape(-1, self.batch_size))
        return [batches[place] for place in random.permutation(len(batches))]

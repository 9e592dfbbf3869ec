"""Data order: a function of seed and step, fair to every sequence."""

from collections import Counter

import numpy as np
import pytest

from mechdistill.distil.order import DataOrder

LENGTHS = [int(n) for n in np.random.default_rng(0).integers(50, 150, size=100)]


def test_a_step_is_the_same_whatever_was_asked_before() -> None:
    in_turn = DataOrder(LENGTHS, 8, seed=1)
    batches = [in_turn.batch(step) for step in range(40)]
    assert DataOrder(LENGTHS, 8, seed=1).batch(37) == batches[37]
    assert in_turn.batch(3) == batches[3]


def test_seeds_and_epochs_differ() -> None:
    order = DataOrder(LENGTHS, 8, seed=1)
    assert order.batch(0) != DataOrder(LENGTHS, 8, seed=2).batch(0)
    assert [order.batch(s) for s in range(12)] != [order.batch(s) for s in range(12, 24)]


def test_an_epoch_shows_each_sequence_at_most_once_and_nearly_all() -> None:
    order = DataOrder(LENGTHS, 8, seed=3)
    seen = Counter(number for step in range(12) for number in order.batch(step))
    assert max(seen.values()) == 1
    assert len(seen) == 96


def test_batches_hold_sequences_of_like_length() -> None:
    lengths = np.random.default_rng(1).integers(50, 150, size=2000)
    order = DataOrder([int(n) for n in lengths], 20, seed=0)
    spread = [np.ptp(lengths[order.batch(step)]) for step in range(100)]
    assert np.mean(spread) < 20
    assert np.std([lengths[order.batch(step)].mean() for step in range(100)]) > 10


def test_fewer_sequences_than_a_batch_make_one_batch() -> None:
    order = DataOrder([5, 6, 7], 8, seed=0)
    assert sorted(order.batch(0)) == sorted(order.batch(4)) == [0, 1, 2]


def test_no_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="no sequence"):
        DataOrder([], 8, seed=0)

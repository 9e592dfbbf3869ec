"""Cutting rationales: cover, order, and a search that only ever lowers its criterion."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.distil.chunks import average_cuts, searched_cuts


@st.composite
def cut_rationales(draw):
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    begin = draw(st.integers(0, 20))
    edges = (begin + np.cumsum([0, *lengths])).tolist()
    return edges[:-1], edges[-1], draw(st.integers(1, 9))


@given(cut_rationales())
def test_average_cuts_are_starts_of_steps_beginning_with_the_first(case) -> None:
    units, end, count = case
    cuts = average_cuts(units, end, count)
    assert cuts[0] == units[0]
    assert cuts == sorted(set(cuts))
    assert set(cuts) <= set(units)
    assert len(cuts) == min(count, len(units))


def test_average_cuts_part_equal_steps_equally() -> None:
    assert average_cuts([0, 10, 20, 30, 40, 50], 60, 3) == [0, 20, 40]
    assert average_cuts([0, 10, 20, 30, 40, 50], 60, 1) == [0]
    assert average_cuts([7], 9, 4) == [7]


def mean_of_means(cuts: list[int], end: int, losses: np.ndarray, first: int) -> float:
    edges = [*cuts, end]
    return float(np.mean([losses[a - first : b - first].mean() for a, b in pairwise(edges)]))


@given(cut_rationales(), st.integers(0, 999))
def test_search_keeps_the_number_of_chunks_and_never_raises_the_criterion(case, seed) -> None:
    units, end, count = case
    losses = np.random.default_rng(seed).random(end - units[0])
    start = average_cuts(units, end, count)
    found = searched_cuts(start, units, end, losses, units[0])
    assert len(found) == len(start)
    assert found[0] == units[0]
    assert found == sorted(set(found))
    assert set(found) <= set(units)
    before = mean_of_means(start, end, losses, units[0])
    assert mean_of_means(found, end, losses, units[0]) <= before + 1e-12


def test_search_moves_a_boundary_to_set_a_hard_step_with_a_long_easy_one() -> None:
    losses = np.array([0.1] * 4 + [3.0] * 2 + [0.1] * 4)
    units = [0, 2, 4, 6, 8]
    found = searched_cuts([0, 6], units, 10, losses, 0)
    tried = {cut: mean_of_means([0, cut], 10, losses, 0) for cut in (2, 4, 6, 8)}
    assert tried[found[1]] == pytest.approx(min(tried[4], tried[6], tried[8]))


def test_search_leaves_equals_as_they_are() -> None:
    assert searched_cuts([0, 4], [0, 2, 4, 6], 8, np.ones(8), 0) == [0, 4]

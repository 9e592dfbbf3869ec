from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.errors import InputError
from mechdistill.patching.conditions import (
    RANKINGS,
    conditions,
    control_of,
    distinct_sets,
    head_masks,
    heads_of,
    read_rankings,
    single_heads,
    without_controls,
)

ALL = heads_of(4, 5)
shuffled = st.permutations(ALL)


def build(ranked, bins=(1, 3, 8, 30), draws=4, seed=0, name="top"):
    return conditions({name: ranked}, ALL, bins, draws, seed)


@given(shuffled)
def test_bins_are_cumulative_and_counted(ranked):
    top = {c.bin: c.heads for c in build(ranked) if c.ranking == "top"}
    assert sorted(top) == [1, 3, 8, 20]  # the last clipped to the model
    assert top[1] < top[3] < top[8] < top[20]
    assert all(len(heads) == size for size, heads in top.items())
    assert top[3] == frozenset(ranked[:3])


@given(shuffled, st.integers(0, 9))
def test_controls_are_as_many_and_outside_the_top(ranked, seed):
    found = build(ranked, seed=seed)
    for c in found:
        assert len(c.heads) == c.bin
        if c.ranking not in ("top", "all"):
            assert not c.heads & frozenset(ranked[: c.bin])
    assert {c.bin for c in found if c.ranking == "random"} == {1, 3, 8}  # 20 leaves none over


@given(shuffled)
def test_depth_matched_heads_lie_in_the_top_s_layers_as_far_as_they_go(ranked):
    for c in build(ranked, bins=(3,)):
        if c.ranking == "depth_matched":
            top = Counter(layer for layer, _ in ranked[:3])
            own = Counter(layer for layer, _ in c.heads)
            # five heads a layer: up to two of a layer can be matched, three leave two
            matched = {layer: min(n, 5 - n) for layer, n in top.items()}
            assert all(own[layer] >= n for layer, n in matched.items())


@given(shuffled)
def test_lowest_are_the_last_of_the_ranking(ranked):
    lowest = {c.bin: c.heads for c in build(ranked) if c.ranking == "lowest"}
    assert lowest[3] == frozenset(ranked[-3:])


def test_draws_differ_and_repeat_with_the_seed():
    ranked = ALL[::-1]
    one, two, other = build(ranked), build(ranked), build(ranked, seed=1)
    assert one == two
    assert one != other
    draws = [c.heads for c in one if c.ranking == "random" and c.bin == 3]
    assert len(set(draws)) > 1
    few = build(ranked, bins=(3,))
    assert [c.heads for c in few if c.ranking == "random"] == draws


def test_alternative_ranking_has_controls_of_its_own():
    found = build(ALL, bins=(2,), draws=1, name="top_help")
    assert [c.ranking for c in found] == ["top_help", "lowest_help", "random_help", "all"]
    assert control_of("top_help", "random") == "random_help"
    assert [c.ranking for c in without_controls(found)] == ["top_help", "all"]


def test_equal_sets_are_run_once():
    found = conditions({"top": ALL, "top_help": ALL}, ALL, [1, 2], 3, 0)
    sets = distinct_sets(found)
    assert len(sets) == len(set(sets)) < len(found)
    assert {c.heads for c in found} == set(sets)


def test_masks_mark_exactly_the_heads():
    masks = head_masks([frozenset([(0, 1), (2, 3)]), frozenset()], 4, 5)
    assert masks.nonzero().tolist() == [[0, 0, 1], [0, 2, 3]]
    assert head_masks([c.heads for c in single_heads(ALL)], 4, 5).sum() == 20


def test_rankings_are_read_in_order_of_rank():
    score, anchor, sinks = RANKINGS[1]["top"]
    rows = [
        ("teacher", 1, *variant, rank, layer, rank)
        for variant in RANKINGS[1].values()
        for rank, layer in ((2, 0), (1, 3), (3, 1))
    ]
    rows += [("student", 1, score, anchor, sinks, 1, 0, 0)]
    columns = ["model", "phase", "score", "anchor", "sinks", "rank", "layer", "head"]
    found = read_rankings(pd.DataFrame(rows, columns=columns), "teacher", 1)
    assert list(found) == list(RANKINGS[1])
    assert found["top"] == [(3, 1), (0, 2), (1, 3)]


def test_missing_ranking_is_an_input_error():
    empty = pd.DataFrame(columns=["model", "phase", "score", "anchor", "sinks", "rank"])
    with pytest.raises(InputError, match="no heads of teacher for coarse unembed out"):
        read_rankings(empty, "teacher", 1)

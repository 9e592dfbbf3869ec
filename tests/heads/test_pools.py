"""Pools from tables of scores."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.errors import InputError
from mechdistill.heads.pools import (
    Pool,
    Pools,
    choose_pool,
    choose_pools,
    flagged_heads,
    pool_weights,
    random_pools,
    read_pools,
    write_pools,
)
from mechdistill.heads.ranking import FACTORS, PRIMARY

HEADS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def scores(phase, first, second, product):
    """A table of head scores with given mean factors and product."""
    variants = [*FACTORS[phase], PRIMARY[phase]]
    return pd.concat(
        [
            pd.DataFrame(HEADS, columns=["layer", "head"]).assign(
                model="teacher", phase=phase, score=score, anchor=anchor, sinks=sinks, value=values
            )
            for (score, anchor, sinks), values in zip(variants, (first, second, product))
        ],
        ignore_index=True,
    )


COARSE = scores(1, [2.0, -2.0, 1.0, 3.0], [0.5, -0.9, 0.4, 0.1], [1.0, 1.8, 0.4, 0.3])
REFINE = scores(2, [0.1, 0.1, 0.1, -0.1], [1.0, 2.0, -1.0, 1.0], [0.1, 0.2, -0.1, -0.1])


def members(pool):
    return list(zip(pool.layers.tolist(), pool.heads.tolist()))


def test_pool_takes_the_highest_scores_with_two_positive_factors():
    pool = choose_pool(COARSE, 1, size=2, temperature=1.0)
    assert members(pool) == [(0, 0), (1, 0)]  # (0, 1) scores highest with two negative factors


def test_passed_over_heads_are_flagged():
    (flag,) = flagged_heads(COARSE, 1, size=2)
    assert (flag["layer"], flag["head"], flag["kurtosis"], flag["cosine"]) == (0, 1, -2.0, -0.9)


def test_pool_is_smaller_where_fewer_heads_qualify():
    assert members(choose_pool(REFINE, 2, size=4, temperature=1.0)) == [(0, 1), (0, 0)]


def test_pool_is_empty_where_none_qualifies():
    nobody = COARSE.assign(value=-COARSE["value"].abs())
    pool = choose_pool(nobody, 1, size=3, temperature=1.0)
    assert len(pool) == 0
    assert pool.used_layers() == []
    assert pool.layer_weights(0, 2).tolist() == [0.0, 0.0]


def test_head_without_a_score_enters_no_pool():
    holes = COARSE.copy()
    holes.loc[holes["score"] == "coarse", "value"] = [np.nan, 1.8, 0.4, 0.3]
    assert (0, 0) not in members(choose_pool(holes, 1, size=4, temperature=1.0))


@given(
    st.lists(st.floats(-20, 20), min_size=1, max_size=8),
    st.floats(0.1, 10),
    st.floats(-50, 50),
)
def test_weights_do_not_depend_on_the_unit_of_the_score(values, unit, shift):
    score = torch.tensor(values, dtype=torch.float64)
    weights = pool_weights(score, 1.0)
    assert weights.sum().item() == pytest.approx(1.0)
    if score.std(correction=0) > 1e-3:
        torch.testing.assert_close(pool_weights(score * unit + shift, 1.0), weights)


def test_weights_follow_softmax_of_standard_scores():
    score = torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)
    standard = (score - 3) / torch.sqrt(torch.tensor((4 + 1 + 9) / 3))
    torch.testing.assert_close(pool_weights(score, 0.5), torch.softmax(standard / 0.5, 0))


def test_equal_scores_share_the_weight():
    assert pool_weights(torch.tensor([3.0, 3.0]), 1.0).tolist() == [0.5, 0.5]


def test_written_pools_read_back(tmp_path):
    table = pd.concat([COARSE, REFINE])
    pools = choose_pools(table, 2.5, size=3, temperature=1.0)
    flagged = {phase: flagged_heads(table, phase, size=3) for phase in (1, 2)}
    write_pools(tmp_path / "pools.json", pools, flagged)
    back = read_pools(tmp_path / "pools.json")
    assert (back.model, back.margin_std) == ("teacher", 2.5)
    for phase in (1, 2):
        assert members(back.of(phase)) == members(pools.of(phase))
        torch.testing.assert_close(back.of(phase).weights, pools.of(phase).weights)


def test_layer_weights_place_each_head():
    pool = choose_pool(COARSE, 1, size=2, temperature=1.0)
    assert pool.layer_weights(0, 2)[0] == pool.weights[0]
    assert pool.layer_weights(0, 2)[1] == 0
    assert pool.layer_weights(1, 2)[0] == pool.weights[1]


def test_another_file_is_no_pools_file(tmp_path):
    path = tmp_path / "pools.json"
    path.write_text(json.dumps({"mechdistill_format": 1, "model": "teacher"}))
    with pytest.raises(InputError, match="not a file of head pools"):
        read_pools(path)


def test_random_heads_lie_outside_the_pool_and_take_its_weights():
    pools = Pools(
        "teacher",
        Pool(1, torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([0.7, 0.3])),
        Pool(2, torch.tensor([1]), torch.tensor([0]), torch.tensor([1.0])),
        2.5,
    )
    draws = [random_pools(pools, 3, 4, seed) for seed in range(30)]
    assert random_pools(pools, 3, 4, 7).phase1.layers.tolist() == draws[7].phase1.layers.tolist()
    seen = set()
    for drawn in draws:
        for phase in (1, 2):
            own, found = (
                list(zip(p.of(phase).layers.tolist(), p.of(phase).heads.tolist()))
                for p in (pools, drawn)
            )
            assert len(set(found)) == len(own)
            assert not set(found) & set(own)
            assert torch.equal(drawn.of(phase).weights, pools.of(phase).weights)
            seen |= set(found) if phase == 1 else set()
    assert len(seen) == 10  # every head outside comes up
    assert draws[0].margin_std == 2.5


def test_too_few_heads_for_random_ones_are_refused():
    pool = Pool(1, torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([0.5, 0.5]))
    with pytest.raises(InputError, match="no 2 random ones outside the pool of phase 1"):
        random_pools(Pools("teacher", pool, pool, 1.0), 1, 3, 0)

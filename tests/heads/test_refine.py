"""RefineScore's parts against slow loops from Eq. 3 and the text before it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mechdistill.heads.refine import (
    attended_mixed,
    helpfulness,
    helpfulness_cosine,
    loop_back,
    match_on_distance,
    mean_cosine,
    refine_score,
)

B, H, Q, P, D, WIDTH = 2, 3, 4, 6, 5, 7


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator)  # noqa: E731
    shortlist = torch.rand(B, Q, P, generator=generator) < 0.4
    return {
        "query": draw(B, H, Q, D),
        "key": draw(B, H, P, D),
        "value": draw(B, H, P, D),
        "rows": torch.softmax(2 * draw(B, H, Q, P), -1),
        "writes": draw(B, H, Q, WIDTH),
        "gradient": draw(B, Q, WIDTH),
        "shortlist": shortlist,
        "near_miss": (torch.rand(B, Q, P, generator=generator) < 0.4) & ~shortlist,
    }


def cos(a, b):
    a, b = a.double().numpy(), b.double().numpy()
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def test_score_is_eq_3_written_as_a_slow_loop(tensors):
    t = tensors
    score = refine_score(
        loop_back(t["query"], t["key"], t["shortlist"], t["near_miss"]),
        helpfulness(t["writes"], t["gradient"]),
    )
    defined = 0
    for b, h, q in itertools.product(range(B), range(H), range(Q)):
        short = [p for p in range(P) if t["shortlist"][b, q, p]]
        near = [p for p in range(P) if t["near_miss"][b, q, p]]
        if not short or not near:
            assert score[b, h, q].isnan()
            continue
        defined += 1
        query = t["query"][b, h, q]
        loop = np.mean([cos(query, t["key"][b, h, p]) for p in short]) - np.mean(
            [cos(query, t["key"][b, h, p]) for p in near]
        )
        inner = sum(
            t["writes"][b, h, q, i].item() * t["gradient"][b, q, i].item() for i in range(WIDTH)
        )
        assert score[b, h, q].item() == pytest.approx(loop * inner, rel=1e-4, abs=1e-5)
    assert defined > 0


def test_similarity_to_an_empty_set_is_undefined(tensors):
    nobody = torch.zeros(B, Q, P, dtype=torch.bool)
    assert mean_cosine(tensors["query"], tensors["key"], nobody).isnan().all()


def test_help_cosine_is_the_inner_product_without_the_lengths(tensors):
    writes, gradient = tensors["writes"], tensors["gradient"]
    lengths = writes.norm(dim=-1) * gradient.norm(dim=-1)[:, None]
    torch.testing.assert_close(
        helpfulness_cosine(writes, gradient) * lengths, helpfulness(writes, gradient)
    )


def test_attended_write_mixes_only_shortlist_keys_above_the_threshold(tensors):
    rows, value, members = tensors["rows"], tensors["value"], tensors["shortlist"]
    mixed, attended = attended_mixed(rows, value, members)
    assert attended.any()
    assert not attended.all()
    for b, h, q in itertools.product(range(B), range(H), range(Q)):
        expected, any_key = torch.zeros(D), False
        for p in range(P):
            if members[b, q, p] and rows[b, h, q, p] > 0.3:
                expected, any_key = expected + rows[b, h, q, p] * value[b, h, p], True
        torch.testing.assert_close(mixed[b, h, q], expected)
        assert attended[b, h, q].item() == any_key


def test_loop_back_gradient_matches_finite_differences(tensors):
    query = tensors["query"].double().requires_grad_()
    key = tensors["key"].double().requires_grad_()
    everywhere = torch.ones(B, Q, P, dtype=torch.bool)
    half = everywhere.clone()
    half[..., : P // 2] = False
    assert torch.autograd.gradcheck(lambda q, k: loop_back(q, k, half, ~half), (query, key))


def test_matching_pairs_the_nearest_mentions():
    assert match_on_distance([3, 20, 40], [22, 41]) == ((20, 40), (22, 41))


@given(st.sets(st.integers(0, 60), max_size=8), st.sets(st.integers(0, 60), max_size=8))
def test_matching_keeps_equally_many_of_both(shortlist, near_miss):
    short, near = match_on_distance(sorted(shortlist), sorted(near_miss - shortlist))
    assert len(short) == len(near) == min(len(shortlist), len(near_miss - shortlist))
    assert set(short) <= shortlist
    assert set(near) <= near_miss


def test_matching_brings_mean_distances_together():
    shortlist, near_miss = [5, 50], [48]  # kept label named long ago too
    short, near = match_on_distance(shortlist, near_miss)
    assert abs(np.mean(short) - np.mean(near)) < abs(np.mean(shortlist) - np.mean(near_miss))

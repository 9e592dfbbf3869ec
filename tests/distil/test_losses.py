"""Reductions and divergences of the mechanistic terms, and gradients by finite differences."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mechdistill.distil.losses import coarse_terms, example_mean, refine_terms, rows_kl
from mechdistill.distil.mechanisms import (
    CoarseSignals,
    PooledHeads,
    RefineSignals,
    Slots,
    coarse_signals,
    refine_signals,
)
from mechdistill.models.tap import LayerRecord

KEYS = 8


def random(seed: int, *shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@given(seed=st.integers(0, 1000))
def test_rows_kl_is_torchs_kl(seed: int) -> None:
    teacher, student = (random(seed + i, 3, 7).softmax(-1) for i in (0, 1))
    expected = torch.nn.functional.kl_div(student.log(), teacher, reduction="none").sum(-1)
    torch.testing.assert_close(rows_kl(teacher, student), expected)


def test_rows_kl_has_the_teacher_in_front() -> None:
    teacher, student = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
    expected = 0.5 * torch.tensor(0.5 / 0.9).log() + 0.5 * torch.tensor(0.5 / 0.1).log()
    torch.testing.assert_close(rows_kl(teacher, student), expected)


def test_a_key_that_the_student_ignores_costs_a_finite_amount() -> None:
    teacher = torch.tensor([0.5, 0.5])
    student = torch.tensor([1.0, 0.0], requires_grad=True)
    loss = rows_kl(teacher, student)
    loss.backward()
    assert 5 < loss.item() < 20
    assert torch.isfinite(student.grad).all()


def test_long_traces_do_not_dominate() -> None:
    values = torch.tensor([[1.0, 1.0, 1.0, 1.0], [3.0, 9.0, 9.0, 9.0]])
    used = torch.tensor([[True] * 4, [True, False, False, False]])
    assert example_mean(values, used) == 2.0


def test_examples_without_positions_are_left_out() -> None:
    values = torch.tensor([[2.0, 4.0], [torch.nan, torch.nan]])
    used = torch.tensor([[True, True], [False, False]])
    assert example_mean(values, used) == 3.0
    assert example_mean(values, torch.zeros_like(used)) == 0.0


@pytest.fixture
def slots() -> Slots:
    return Slots(
        early=torch.tensor([[12, 13], [11, -1]]),
        refine=torch.tensor([[14], [13]]),
        mentions=torch.tensor([[3, 5], [4, -1]]),
        shortlist=torch.tensor([[[True, False]], [[True, False]]]),
        near_miss=torch.tensor([[[False, True]], [[False, False]]]),
        offset=torch.tensor([0, 2]),
        length=15,
        special=torch.zeros(2, 15, dtype=torch.bool),
    )


def seen_from(slots: Slots, positions: Tensor) -> Tensor:
    """Keys from the first token to each position, bool [B, Q, T]; none for an unused one."""
    keys = torch.arange(slots.length)
    return (keys <= positions[..., None]) & (keys >= slots.offset[:, None, None])


def one_layer(slots: Slots, logits: Tensor, query: Tensor, key: Tensor) -> dict[int, LayerRecord]:
    visible = seen_from(slots, torch.cat([slots.early, slots.refine], 1))
    rows = logits.masked_fill(~visible[:, None], -1e30).softmax(-1) * visible[:, None]
    return {0: LayerRecord(rows, visible, query, query, key, key)}


def test_gradients_of_all_terms_equal_finite_differences(slots: Slots) -> None:
    pools = PooledHeads(torch.tensor([[0.6, 0.4]]).double(), torch.tensor([[0.0, 1.0]]).double())
    anchors, gradients = random(1, 2, 5), random(2, 2, 1, 5)
    teacher_rows = random(3, 2, 2, 15).masked_fill(~seen_from(slots, slots.early), -1e30)
    teacher_rows = teacher_rows.masked_fill(slots.sink_keys(), -1e30).softmax(-1)
    teacher = (
        CoarseSignals(teacher_rows, random(4, 2, 2), random(5, 2, 2)),
        RefineSignals(random(6, 2, 1), random(7, 2, 1), random(8, 2, 1)),
    )
    used = (slots.early >= 0, slots.near_miss.any(-1))

    def terms(logits: Tensor, query: Tensor, key: Tensor, writes: Tensor) -> tuple[Tensor, ...]:
        records = one_layer(slots, logits, query, key)
        coarse = coarse_signals(records, pools, writes[:, :2], anchors, slots, KEYS)
        refine = refine_signals(records, pools, writes[:, 2:], gradients, 1.7, slots)
        found = coarse_terms(teacher[0], coarse, used[0]) | refine_terms(
            teacher[1], refine, used[1]
        )
        return tuple(found.values())

    inputs = (random(9, 2, 2, 3, 15), random(10, 2, 2, 3, 4), random(11, 2, 2, 2, 4))
    inputs = (*inputs, random(12, 2, 3, 5))
    assert torch.autograd.gradcheck(terms, [value.requires_grad_() for value in inputs])


def test_an_unused_slot_and_an_empty_set_give_zeros_not_nans(slots: Slots) -> None:
    pools = PooledHeads(torch.tensor([[0.6, 0.4]]).double(), torch.tensor([[0.5, 0.5]]).double())
    records = one_layer(slots, random(1, 2, 2, 3, 15), random(2, 2, 2, 3, 4), random(3, 2, 2, 2, 4))
    coarse = coarse_signals(records, pools, random(4, 2, 2, 5), random(5, 2, 5), slots, KEYS)
    refine = refine_signals(records, pools, random(6, 2, 1, 5), random(7, 2, 1, 5), 1.0, slots)
    assert not coarse.rows[1, 1].any()
    assert coarse.interaction[1, 1] == 0
    assert refine.loop[1, 0] == 0
    assert torch.isfinite(coarse.interaction).all()

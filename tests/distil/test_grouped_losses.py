"""Losses between models of different tokenizers, against loops over the tokens of each group."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kurtosis as scipy_kurtosis
from torch import Tensor

from mechdistill.distil.batch import collate, collate_tokens
from mechdistill.distil.caching import cache_targets, without_distributions
from mechdistill.distil.forward import run
from mechdistill.distil.losses import coarse_terms
from mechdistill.distil.mechanisms import PooledHeads, coarse_signals, pooled_rows
from mechdistill.distil.method import StepInputs, cot_terms
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.distil.targets import Targets, read_targets, write_targets
from tests.distil.conftest import PAD, SPECIAL, sequence
from tests.distil.test_losses import seen_from
from tests.distil.test_mechanistic_losses import (
    CACHING,
    KEYS,
    random_anchors,
    raw_terms,
    started,
    step_inputs,
)


def token_by_token(of: TrainingSequence) -> TrainingSequence:
    """Each token a group, but for the sinks."""
    text = [index > 0 and token not in SPECIAL for index, token in enumerate(of.tokens)]
    places = np.cumsum(text) - 1
    return replace(of, groups=tuple(int(p) if t else -1 for p, t in zip(places, text)))


@pytest.fixture
def other(sequences: list[TrainingSequence]) -> list[TrainingSequence]:
    """The same examples in about twice as many tokens of another vocabulary."""
    longer = []
    for number, of in enumerate(sequences):
        new = sequence(number, 2 * len(of.tokens), len(of.early), len(of.refine))
        queries = [2 * query + 1 for query in of.early]
        groups = tuple((index - 2) // 2 if index >= 2 else -1 for index in range(len(new.tokens)))
        longer.append(
            replace(
                new, early=tuple(queries), groups=groups, teacher_rows=(-1,) * len(new.predicting)
            )
        )
    return longer


@pytest.fixture
def grouped(sequences: list[TrainingSequence]) -> list[TrainingSequence]:
    """The teacher's: token g + 1 is group g."""
    return [replace(of, groups=tuple(range(-1, len(of.tokens) - 1))) for of in sequences]


@pytest.fixture
def targets(teacher, grouped, other, teacher_pools) -> Targets:
    anchors = random_anchors(grouped, teacher.config.hidden_size, 5)
    cached = cache_targets(teacher, grouped, anchors, teacher_pools, **CACHING, batch_size=2)
    return without_distributions(cached, {of.example: of.groups for of in other})


def test_groups_of_one_token_give_the_terms_of_tokens(
    teacher, student, sequences, teacher_pools, student_pools
) -> None:
    anchors = [random_anchors(sequences, m.config.hidden_size, 5) for m in (teacher, student)]
    found = []
    for of in (sequences, [token_by_token(s) for s in sequences]):
        targets = cache_targets(teacher, of, anchors[0], teacher_pools, **CACHING, batch_size=2)
        method = started("mech", student, student_pools, anchors[1], of)
        found.append(raw_terms(method, student, of, targets))
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-4, atol=1e-6)


def slow_row(row: Tensor, groups: tuple[int, ...], query: int) -> list[float]:
    """Mass of each group that a position sees, without the tokens of none, adding to one."""
    seen = max(groups[: query + 1]) + 1
    masses = [0.0] * seen
    for token, group in enumerate(groups[: query + 1]):
        if group >= 0:
            masses[group] += float(row[token])
    return [mass / sum(masses) for mass in masses]


def slow_sharpness(row: list[float]) -> float:
    return math.log10(1 + max(float(scipy_kurtosis(np.array(row) * len(row))), 0))


def rows_of(model: Any, pools: Any, of: TrainingSequence) -> Tensor:
    """Pooled attention rows of one sequence alone, over its tokens [E, n]."""
    alone = replace(of, groups=())
    heads = PooledHeads.of(pools, model.config.num_hidden_layers, model.config.num_attention_heads)
    batch = collate([alone], PAD, SPECIAL)
    records = run(model, batch, heads.tap(batch.slots)).records
    rows, _ = pooled_rows(records, heads, len(of.early))
    return rows[0].detach()


def test_rows_are_compared_over_shared_groups(
    teacher, student, grouped, other, targets, teacher_pools, student_pools
) -> None:
    anchors = random_anchors(other, student.config.hidden_size, 6)
    method = started("mech", student, student_pools, anchors, other)
    step = step_inputs(method, student, other, targets)
    terms = raw_terms(method, student, other, targets)
    divergences, sharper = [], []
    for row, (first, second) in enumerate(zip(grouped, other, strict=True)):
        of_teacher, of_student = (
            [slow_row(r, of.groups, q) for r, q in zip(rows_of(m, p, of), of.early, strict=True)]
            for m, p, of in ((teacher, teacher_pools, first), (student, student_pools, second))
        )
        divergences.append(
            np.mean(
                [
                    sum(p * math.log(p / q) for p, q in zip(ps, qs, strict=True))
                    for ps, qs in zip(of_teacher, of_student, strict=True)
                ]
            )
        )
        for slot, masses in enumerate(of_teacher):
            cached = step.signals.coarse.rows[row, slot]
            np.testing.assert_allclose(cached[: len(masses)], masses, rtol=1e-4, atol=1e-6)
            assert not cached[len(masses) :].any()
            kept = targets.examples[first.example]
            expected = slow_sharpness(masses) * float(kept.alignment[slot])
            if len(masses) >= KEYS:
                sharper.append(float(kept.coarse_interaction[slot]) - expected)
    assert terms["p1_attention"].item() == pytest.approx(np.mean(divergences), rel=1e-3)
    assert np.abs(sharper).max() < 1e-3


def test_what_the_teacher_and_the_student_see_is_the_same_groups(grouped, other) -> None:
    first, second = (collate(of, PAD, SPECIAL).slots for of in (grouped, other))
    seen = [slots.comparable_keys(seen_from(slots, slots.early)) for slots in (first, second)]
    for one, two in zip(*seen, strict=True):
        width = min(one.shape[-1], two.shape[-1]) - 1
        assert torch.equal(one[:, :width], two[:, :width])
    for slots in (first, second):
        assert slots.sink_keys().sum(-1).eq(1).all()
        assert slots.sink_keys()[..., -1].all()


def test_a_group_that_a_window_cuts_is_a_key_with_the_mass_of_what_is_seen_of_it(other) -> None:
    slots = collate(other[:1], PAD, SPECIAL).slots
    query, window = int(slots.early[0, 0]), 5
    first = query - window + 1
    at = torch.arange(slots.length)
    seen = ((at >= first) & (at <= query)).expand(*slots.early.shape, -1)
    found = slots.comparable_keys(seen)[0, 0]
    rows = slots.comparable(seen / window)[0, 0]
    for group in range(slots.columns - 1):
        tokens = (slots.groups[0] == group).nonzero().flatten().tolist()
        inside = sum(first <= token <= query for token in tokens)
        assert bool(found[group]) == (inside > 0)
        assert float(rows[group]) == pytest.approx(inside / window)
    assert {1, 2} == {round(float(mass) * window) for mass in rows if mass > 0}


def test_no_distribution_is_matched(student, other, targets, student_pools) -> None:
    """The teacher's tokens are none of the student's vocabulary."""
    step = StepInputs(
        batch := collate(other, PAD, SPECIAL),
        collate_tokens(other, targets.examples),
        None,
        run(student, batch),
        {},
    )
    terms = cot_terms(step, 1.0)
    assert terms["cot_kl"].value == 0
    assert terms["cot_nll"].value > 0


def test_groups_are_kept_on_disk(tmp_path, targets) -> None:
    write_targets(tmp_path / "targets.safetensors", targets)
    found = read_targets(tmp_path / "targets.safetensors")
    assert found.groups == targets.groups
    assert found.left_out() == ("cot_kl: student and teacher have different vocabularies",)
    for name, example in targets.examples.items():
        for field, value in vars(example).items():
            assert torch.equal(getattr(found.examples[name], field), value)


def test_sequences_of_a_trace_or_its_beginning_get_their_groups(other, targets) -> None:
    plain = [replace(of, groups=(), teacher_rows=tuple(range(len(of.predicting)))) for of in other]
    assert targets.aligned(plain) == other
    beginning = replace(plain[0], tokens=plain[0].tokens[:20])
    assert targets.aligned([beginning])[0].groups == other[0].groups[:20]
    assert replace(targets, groups={}).aligned(plain) == plain


def test_gradients_through_groups_are_those_of_finite_differences(grouped) -> None:
    slots = collate([grouped[0]], PAD, SPECIAL).slots
    slots = replace(slots, groups=torch.tensor([[-1, -1, *(g // 3 for g in range(28))]]))
    torch.manual_seed(0)
    heads, width = 2, 4
    pools = PooledHeads(torch.tensor([[0.7, 0.3]]), torch.zeros(1, 2))
    writes = torch.randn(1, slots.early.shape[1], width, dtype=torch.float64)
    anchors = torch.randn(1, width, dtype=torch.float64)
    logits = 3 * torch.randn(1, heads, slots.early.shape[1], 30, dtype=torch.float64)
    seen = torch.arange(30) <= slots.early[..., None]
    used = slots.early >= 0

    def losses(logits: Tensor, writes: Tensor, teacher: Any = None) -> Any:
        rows = logits.masked_fill(~seen[:, None], -1e9).softmax(-1)
        records = {0: SimpleNamespace(rows=rows, visible=seen)}
        weights = PooledHeads(pools.coarse.double(), pools.refine)
        found = coarse_signals(records, weights, writes, anchors, slots, 4)
        if teacher is None:
            return found
        return tuple(coarse_terms(teacher, found, used).values())

    teacher = losses(3 * torch.randn_like(logits), torch.randn_like(writes))
    values = losses(logits, writes, teacher)
    assert all(value > 1e-4 for value in values)
    inputs = (logits.requires_grad_(), writes.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, w: losses(x, w, teacher), inputs, atol=1e-4)

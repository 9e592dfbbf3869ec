"""The losses on nodes of rationales against loops written from the formulas."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mechdistill.distil.steps import Step
from mechdistill.distil.structure import (
    VARIANCE_FLOOR,
    chain,
    contrast,
    relation,
    sharing_a_label,
    spread,
    tree,
)


def steps(*kinds: str) -> list[Step]:
    return [Step(kind, 2 * i, 2 * i + 2, ()) for i, kind in enumerate(kinds)]


def random_nodes(count: int, width: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, width, generator=generator, dtype=torch.float64)


def slow_contrast(nodes: Tensor, positive: Tensor, temperature: float) -> float:
    rows = [[float(x) for x in row] for row in nodes]
    unit = [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in rows]

    def similar(i: int, j: int) -> float:
        return math.exp(sum(a * b for a, b in zip(unit[i], unit[j])) / temperature)

    losses = []
    for j in range(len(rows)):
        partners = [p for p in range(len(rows)) if positive[j, p]]
        if not partners:
            continue
        below = sum(similar(j, a) for a in range(len(rows)) if a != j)
        losses.append(-sum(math.log(similar(j, p) / below) for p in partners) / len(partners))
    return sum(losses) / len(losses) if losses else 0.0


def slow_spread(structured: Tensor, least_std: float) -> float:
    rows = [[float(x) for x in row] for row in structured]
    n, width = len(rows), len(rows[0])
    mean = [sum(row[d] for row in rows) / n for d in range(width)]

    def sigma(d: int, e: int) -> float:
        return sum((row[d] - mean[d]) * (row[e] - mean[e]) for row in rows) / (n - 1)

    low = [max(0.0, least_std - math.sqrt(sigma(d, d) + VARIANCE_FLOOR)) for d in range(width)]
    pairs = [sigma(d, e) ** 2 for d in range(width) for e in range(width) if d != e]
    return sum(low) / width + sum(pairs) / (width * (width - 1))


def test_relation_of_a_chain_of_three() -> None:
    found = relation(3, chain(steps("overview", "comparison", "verdict")))
    assert found.tolist() == [[0, 0.5, 0], [0, 0, 1], [0, 0, 0]]


def test_relation_of_a_tree_takes_the_nearest_sink() -> None:
    edges = tree(steps("overview", "comparison", "verdict", "comparison", "verdict"))
    assert edges == [(0, 1), (1, 2), (0, 3), (3, 4)]
    found = relation(5, edges)
    assert found[0].tolist() == [0, 0.5, 0, 0.5, 0]
    assert found[3].tolist() == [0, 0, 0, 0, 1]
    assert not found[2].any()


def test_a_shortcut_to_a_sink_counts_for_all_edges_of_a_node() -> None:
    found = relation(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert found[0].tolist() == [0, 1, 0, 1]


def test_a_cycle_without_a_sink_has_no_weight() -> None:
    assert not relation(2, [(0, 1), (1, 0)]).any()


@pytest.mark.parametrize(
    "kinds",
    [
        ("overview",),
        ("comparison", "verdict"),
        ("overview", "comparison", "comparison", "verdict"),
        ("overview", "comparison", "verdict", "comparison"),
    ],
)
def test_what_is_no_tree_is_called_none(kinds: tuple[str, ...]) -> None:
    assert tree(steps(*kinds)) is None


def test_nodes_with_a_common_label_are_alike_and_none_is_like_itself() -> None:
    labels = [frozenset("ab"), frozenset("b"), frozenset("c"), frozenset()]
    assert sharing_a_label(labels).tolist() == [
        [False, True, False, False],
        [True, False, False, False],
        [False] * 4,
        [False] * 4,
    ]


@given(seed=st.integers(0, 999), count=st.integers(1, 6), temperature=st.sampled_from([0.1, 1.0]))
def test_contrast_is_the_printed_loss(seed: int, count: int, temperature: float) -> None:
    nodes = random_nodes(count, 4, seed)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.rand(count, count, generator=generator) < 0.4
    positive = (drawn | drawn.T).fill_diagonal_(False)
    wanted = slow_contrast(nodes, positive, temperature)
    assert contrast(nodes, positive, temperature).item() == pytest.approx(wanted, abs=1e-5)


def test_two_pairs_of_equal_nodes_give_the_analytic_minimum() -> None:
    nodes = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [-1, 0]])
    positive = torch.tensor([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]).bool()
    wanted = -math.log(math.e / (math.e + 2 / math.e))
    assert contrast(nodes, positive, 1.0).item() == pytest.approx(wanted)


def test_a_node_alone_has_no_contrast_and_a_finite_gradient() -> None:
    nodes = torch.randn(1, 3, requires_grad=True)
    contrast(nodes, torch.zeros(1, 1, dtype=torch.bool), 0.1).backward()
    assert nodes.grad is not None
    assert torch.equal(nodes.grad, torch.zeros(1, 3))


@given(seed=st.integers(0, 999), count=st.integers(2, 6), width=st.integers(2, 5))
def test_spread_is_the_printed_loss(seed: int, count: int, width: int) -> None:
    structured = random_nodes(count, width, seed)
    found = spread(structured, 1.0).item()
    assert found == pytest.approx(slow_spread(structured, 1.0), abs=1e-5)


def test_spread_is_nothing_where_dimensions_vary_enough_and_alone() -> None:
    rows = 2.0 * torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    assert spread(rows, 1.0).item() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("count", [0, 1])
def test_spread_of_fewer_than_two_rows_is_nothing(count: int) -> None:
    rows = torch.randn(count, 3, requires_grad=True)
    spread(rows, 1.0).backward()
    assert rows.grad is not None
    assert not rows.grad.any()


def finite_difference(function, at: Tensor, direction: Tensor, step: float = 1e-3) -> float:
    return float((function(at + step * direction) - function(at - step * direction)) / (2 * step))


@pytest.mark.parametrize("name", ["contrast", "spread"])
def test_gradients_are_the_finite_differences(name: str) -> None:
    positive = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).bool()
    functions = {
        "contrast": lambda nodes: contrast(nodes, positive, 0.5),
        "spread": lambda nodes: spread(nodes, 1.5),
    }
    nodes = random_nodes(3, 4, 5).float().requires_grad_()
    (gradient,) = torch.autograd.grad(functions[name](nodes), nodes)
    direction = random_nodes(3, 4, 6).float()
    wanted = finite_difference(functions[name], nodes.detach(), direction)
    assert float((gradient * direction).sum()) == pytest.approx(wanted, abs=2e-3)


def test_equal_nodes_have_a_finite_gradient() -> None:
    nodes = torch.ones(4, 3, requires_grad=True)
    spread(nodes, 1.0).backward()
    assert nodes.grad is not None
    assert nodes.grad.isfinite().all()

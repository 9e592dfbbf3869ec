"""Rationales as graphs of steps, and the losses on their nodes (UniCoTT).

N nodes of a batch, D dimensions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mechdistill.distil.steps import Step

Edge = tuple[int, int]

VARIANCE_FLOOR = 1e-4
"""Added to a variance before its root, whose slope is infinite at 0."""


@dataclass(frozen=True)
class Rationale:
    """The nodes of one trace: tokens [start, end) of z, label sets, weighted edges [n, n]."""

    spans: tuple[tuple[int, int], ...]
    labels: tuple[frozenset[str], ...]
    relation: Tensor


def chain(steps: Sequence[Step]) -> list[Edge]:
    """Each step leads to the next."""
    return [(i, i + 1) for i in range(len(steps) - 1)]


def tree(steps: Sequence[Step]) -> list[Edge] | None:
    """The overview leads to every comparison, and a comparison to the verdict behind it.

    None where the steps are no such tree: no overview, or one without a clause, or a clause without
    a verdict.
    """
    kinds = [step.kind for step in steps]
    if len(kinds) < 3 or kinds != ["overview", *["comparison", "verdict"] * (len(kinds) // 2)]:
        return None
    return [edge for i in range(1, len(kinds), 2) for edge in ((0, i), (i, i + 1))]


def relation(count: int, edges: Sequence[Edge]) -> Tensor:
    """r_ij = a_ij / D(v_i, phi(v_i)): an edge over the distance of its start to the nearest sink.

    A sink has no edge, so its row is 0. A node that reaches no sink (a cycle) has no distance, and
    its row is 0 as well. Gives [count, count].
    """
    after: list[list[int]] = [[] for _ in range(count)]
    for start, end in edges:
        after[start].append(end)
    found = torch.zeros(count, count)
    for start, end in edges:
        distance = _to_sink(after, start)
        found[start, end] = 1.0 / distance if distance else 0.0
    return found


def _to_sink(after: Sequence[Sequence[int]], start: int) -> int:
    """Edges of the shortest path to a node without one; 0 if there is none."""
    seen, waiting = {start}, deque([(start, 0)])
    while waiting:
        node, distance = waiting.popleft()
        if not after[node]:
            return distance
        for other in after[node]:
            if other not in seen:
                seen.add(other)
                waiting.append((other, distance + 1))
    return 0


def sharing_a_label(labels: Sequence[frozenset[str]]) -> Tensor:
    """bool [N, N]: whether two different nodes have a label in common."""
    known = {label: i for i, label in enumerate(sorted(frozenset().union(*labels)))}
    member = torch.zeros(len(labels), max(1, len(known)))
    for node, own in enumerate(labels):
        member[node, [known[label] for label in sorted(own)]] = 1.0
    shared = member @ member.T > 0
    return shared.fill_diagonal_(False)


def contrast(nodes: Tensor, positive: Tensor, temperature: float) -> Tensor:
    """Supervised contrastive loss over nodes, L_nsc.

    Mean over the nodes with a positive of -1/|P(j)| sum_p log(exp(h_j.h_p / t) / sum_{a != j}
    exp(h_j.h_a / t)), h of unit length; 0 if no node has one (the loss is not defined there).

    Args:
        nodes: [N, D].
        positive: bool [N, N], false on the diagonal.
        temperature: t.
    """
    unit = torch.nn.functional.normalize(nodes.float(), dim=-1)
    # the constants: a large one instead of -inf on the diagonal, since 0 * -inf is not a number
    itself = torch.eye(len(nodes), dtype=torch.bool)
    logits = (unit @ unit.T / temperature).masked_fill(itself, -1e9)
    logs = logits - logits.logsumexp(-1, keepdim=True)
    count = positive.sum(-1)
    of_node = -torch.where(positive, logs, 0.0).sum(-1) / count.clamp(min=1)
    anchors = count > 0
    return torch.where(anchors, of_node, 0.0).sum() / anchors.sum().clamp(min=1)


def spread(structured: Tensor, least_std: float) -> Tensor:
    """L_sc = L_sd + L_se: every dimension varies, and no two vary together.

    L_sd = mean_d relu(least_std - sqrt(Sigma_dd)), L_se = mean over d != d' of Sigma_dd'^2, Sigma
    the covariance (over N - 1) of the rows S = R H, in fp32. 0 for fewer than two rows.
    """
    count, width = structured.shape
    if count < 2:
        return structured.sum() * 0.0
    centred = structured.float() - structured.float().mean(0)
    covariance = centred.T @ centred / (count - 1)
    variance = covariance.diagonal()
    low = torch.relu(least_std - (variance + VARIANCE_FLOOR).sqrt()).mean()
    together = covariance.square().sum() - variance.square().sum()
    return low + together / max(1, width * (width - 1))

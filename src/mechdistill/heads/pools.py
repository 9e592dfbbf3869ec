"""The heads that stand for a phase in the losses and in the mechanism metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mechdistill.artifacts import how_to_make, read_json, write_json
from mechdistill.errors import InputError
from mechdistill.heads.ranking import FACTORS, PRIMARY, head_values, positive_heads


@dataclass(frozen=True)
class Pool:
    """Heads of one phase with detached weights that add to one (no head: an empty pool)."""

    phase: int
    layers: Tensor  # long [k], highest score first
    heads: Tensor  # long [k]
    weights: Tensor  # fp32 [k]

    def layer_weights(self, layer: int, n_heads: int) -> Tensor:
        """Weights of all heads of a layer [n_heads], zero outside the pool."""
        weights = torch.zeros(n_heads)
        here = self.layers == layer
        weights[self.heads[here]] = self.weights[here]
        return weights

    def used_layers(self) -> list[int]:
        """Layers that hold a head of the pool, ascending."""
        return sorted(set(self.layers.tolist()))

    def __len__(self) -> int:
        return len(self.layers)


@dataclass(frozen=True)
class Pools:
    """Both phases' pools of one model, and the unit of its margins."""

    model: str
    phase1: Pool
    phase2: Pool
    margin_std: float
    """Standard deviation of the model's margin at refinement positions, in logits: H is divided
    by it, since teacher and student measure it in different units."""

    def of(self, phase: int) -> Pool:
        """The pool of phase 1 or 2."""
        return {1: self.phase1, 2: self.phase2}[phase]


def pool_weights(scores: Tensor, temperature: float) -> Tensor:
    """``softmax(z / tau)`` of the scores standardised within the pool [k] -> [k].

    On raw scores the softmax is nearly one-hot and tau means something else in every model.
    """
    if len(scores) == 0:
        return scores
    spread = scores.std(correction=0)
    standard = (scores - scores.mean()) / torch.where(spread > 0, spread, torch.ones(()))
    return torch.softmax(standard / temperature, dim=0).detach()


def choose_pool(head_scores: pd.DataFrame, phase: int, *, size: int, temperature: float) -> Pool:
    """The `size` heads of highest printed score whose mean factors are both positive.

    Fewer where fewer qualify, an empty pool where none does. No layer is preferred: the depth of
    the heads is a result.

    Args:
        head_scores: of one model, see `mechdistill.heads.ranking.score_heads`.
        phase: 1 or 2.
        size: the most heads to take.
        temperature: of `pool_weights`.
    """
    values = head_values(head_scores[head_scores["phase"] == phase], PRIMARY[phase]).dropna()
    allowed = positive_heads(head_scores[head_scores["phase"] == phase], phase)
    ordered = _from_the_top(values)
    chosen = [(head, value) for head, value in ordered if head in allowed][:size]
    scores = torch.tensor([value for _, value in chosen], dtype=torch.float64)
    weights = pool_weights(scores, temperature).float()
    return _pool_of(phase, [head for head, _ in chosen], weights)


def choose_pools(
    head_scores: pd.DataFrame, margin_std: float, *, size: int, temperature: float
) -> Pools:
    """Both pools of the one model in `head_scores`; see `choose_pool`."""
    (model,) = head_scores["model"].unique()
    first, second = (
        choose_pool(head_scores, phase, size=size, temperature=temperature) for phase in (1, 2)
    )
    return Pools(str(model), first, second, margin_std)


def no_pools(model: str) -> Pools:
    """Pools without heads: nothing inside the model is read."""
    return Pools(model, _pool(1, []), _pool(2, []), margin_std=1.0)


def random_pools(pools: Pools, layers: int, heads: int, seed: int) -> Pools:
    """As many heads a phase, drawn outside the phase's pool, with the pool's weights: a control.

    Args:
        pools: of a model with that many layers, and heads a layer.
        seed: of the draw; the phases are drawn independently.

    Raises:
        InputError: the model has too few heads outside a pool.
    """
    first, second = (
        _random_pool(pools.of(phase), layers, heads, np.random.default_rng([seed, phase]))
        for phase in (1, 2)
    )
    return Pools(f"{pools.model}, random heads", first, second, pools.margin_std)


def _random_pool(pool: Pool, layers: int, heads: int, rng: np.random.Generator) -> Pool:
    taken = set(zip(pool.layers.tolist(), pool.heads.tolist()))
    outside = [
        (layer, head)
        for layer in range(layers)
        for head in range(heads)
        if (layer, head) not in taken
    ]
    if len(outside) < len(pool):
        raise InputError(
            f"a model of {layers * heads} heads has no {len(pool)} random ones outside the pool "
            f"of phase {pool.phase}",
            "lower heads.pool_size, or leave the method random_pool out of distil.methods",
        )
    drawn = [outside[i] for i in rng.permutation(len(outside))[: len(pool)]]
    return _pool_of(pool.phase, drawn, pool.weights)


def flagged_heads(head_scores: pd.DataFrame, phase: int, *, size: int) -> list[dict[str, Any]]:
    """Heads among the `size` highest scores that no pool takes: a mean factor is not positive."""
    rows = head_scores[head_scores["phase"] == phase]
    allowed = positive_heads(rows, phase)
    factors = [head_values(rows, factor) for factor in FACTORS[phase]]
    return [
        {"layer": layer, "head": head, "score": value}
        | {name: float(f[layer, head]) for (name, *_), f in zip(FACTORS[phase], factors)}
        for (layer, head), value in _from_the_top(head_values(rows, PRIMARY[phase]).dropna())[:size]
        if (layer, head) not in allowed
    ]


def write_pools(
    path: str | Path, pools: Pools, flagged: Mapping[int, list[dict[str, Any]]]
) -> None:
    """Write pools and flagged heads (`flagged_heads` of each phase) as JSON."""
    write_json(
        path,
        {"model": pools.model, "margin_std": pools.margin_std}
        | {
            f"phase{phase}": {
                "heads": [
                    {"layer": layer, "head": head, "weight": weight}
                    for layer, head, weight in zip(
                        pool.layers.tolist(), pool.heads.tolist(), pool.weights.tolist()
                    )
                ],
                "flagged": flagged[phase],
            }
            for phase, pool in ((1, pools.phase1), (2, pools.phase2))
        },
    )


def read_pools(path: str | Path) -> Pools:
    """Read what `write_pools` wrote.

    Raises:
        InputError: the file is missing, damaged or not a pools file.
    """
    content = read_json(path)
    try:
        first, second = (_pool(phase, content[f"phase{phase}"]["heads"]) for phase in (1, 2))
        return Pools(content["model"], first, second, float(content["margin_std"]))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a file of head pools ({error!r})",
            how_to_make(path),
        ) from error


def _pool(phase: int, heads: list[dict[str, Any]]) -> Pool:
    weights = torch.tensor([row["weight"] for row in heads], dtype=torch.float32)
    return _pool_of(phase, [(row["layer"], row["head"]) for row in heads], weights)


def _pool_of(phase: int, heads: Sequence[tuple[int, int]], weights: Tensor) -> Pool:
    """A pool of (layer, head) pairs, highest score first."""
    return Pool(
        phase,
        torch.tensor([layer for layer, _ in heads], dtype=torch.long),
        torch.tensor([head for _, head in heads], dtype=torch.long),
        weights,
    )


def _from_the_top(values: pd.Series) -> list[tuple[tuple[int, int], float]]:
    """((layer, head), value) from the highest value down; ties by layer and head."""
    pairs = zip(values.index.to_flat_index(), values.tolist())
    rows = [((int(layer), int(head)), float(value)) for (layer, head), value in pairs]
    return sorted(rows, key=lambda row: (-row[1], row[0]))

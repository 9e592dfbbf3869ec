"""Which heads are patched together: cumulative bins of rankings, and their controls.

The ranking `top` brings its controls with it: `random`, `depth_matched` and `lowest`. An
alternative ranking `top_help` brings `random_help` and `lowest_help`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mechdistill.errors import InputError

Head = tuple[int, int]
"""Layer and head, both from 0."""

RANKINGS: dict[int, dict[str, tuple[str, str, str]]] = {
    1: {
        "top": ("coarse", "unembed", "out"),
        "top_at_events": ("coarse_at_events", "unembed", "out"),
        "top_cosine": ("cosine", "unembed", ""),
        "top_attention_evidence": ("attention_evidence", "", ""),
    },
    2: {
        "top": ("refine", "", ""),
        "top_help": ("help", "", ""),
        "top_attention_cue": ("attention_cue", "", ""),
    },
}
"""Phase -> ranking -> (score, anchor, sinks).

`top` is the printed product (Eqs. 1, 3); beside it the product at region events alone, one factor
alone, and plain attention on the evidence or the cue.
"""


@dataclass(frozen=True)
class Condition:
    """A set of heads that is patched together; `bin` is their number."""

    ranking: str
    bin: int
    draw: int
    heads: frozenset[Head]


def read_rankings(frame: pd.DataFrame, model: str, phase: int) -> dict[str, list[Head]]:
    """Heads from the highest score down, by name of the ranking.

    Args:
        frame: columns model, phase, score, anchor, sinks, rank, layer, head.

    Raises:
        InputError: the table lacks a ranking.
    """
    rankings = {}
    for name, variant in RANKINGS[phase].items():
        chosen = (frame["model"] == model) & (frame["phase"] == phase)
        for column, value in zip(("score", "anchor", "sinks"), variant):
            chosen &= frame[column] == value
        rows = frame[chosen].sort_values("rank")
        if rows.empty:
            raise InputError(
                f"the rankings hold no heads of {model} for {' '.join(variant)} in phase {phase}",
                "make heads/rankings.parquet again",
            )
        rankings[name] = [(int(a), int(b)) for a, b in zip(rows["layer"], rows["head"])]
    return rankings


def plan(
    rankings: pd.DataFrame, size: tuple[int, int], *, bins: Sequence[int], draws: int, seed: int
) -> dict[int, list[Condition]]:
    """The conditions of both phases, from the teacher's ranked heads.

    Args:
        rankings: see `read_rankings`.
        size: layers, and heads a layer.
        bins, draws, seed: see `conditions`.
    """
    every = heads_of(*size)
    return {
        phase: conditions(read_rankings(rankings, "teacher", phase), every, bins, draws, seed)
        for phase in RANKINGS
    }


def conditions(
    rankings: Mapping[str, Sequence[Head]],
    all_heads: Sequence[Head],
    bins: Sequence[int],
    draws: int,
    seed: int,
) -> list[Condition]:
    """Cumulative bins of each ranking with its controls, and all heads together.

    Bins are clipped to the ranking. Random heads are drawn uniformly *outside* the top of the same
    bin. Depth-matched ones too, as many a layer as the top has; where a layer has not enough heads
    left, from the nearest layers. Lowest: the last of the ranking. A bin of more than half the
    heads has no controls, since so many heads are not left; at exactly half they are one and the
    same set, all the others.

    Args:
        rankings: name (`top` or `top_NAME`) -> heads, best first; may lack heads without a score.
        all_heads: every head of the model.
        bins: numbers of heads.
        draws: of each random control.
        seed: of the draws; a bin's draws do not depend on the other bins.
    """
    found = []
    for name, ranked in rankings.items():
        for size in sorted({min(size, len(ranked)) for size in bins}):
            found.append(Condition(name, size, 0, frozenset(ranked[:size])))
            if size <= len(all_heads) - size:
                found += _controls(name, ranked, size, all_heads, draws, seed)
    found.append(Condition("all", len(all_heads), 0, frozenset(all_heads)))
    return found


def without_controls(conditions: Sequence[Condition]) -> list[Condition]:
    """The rankings themselves and all heads."""
    return [c for c in conditions if c.ranking == "all" or c.ranking.startswith("top")]


def control_of(ranking: str, control: str) -> str:
    """Name of a ranking's own control.

    >>> control_of("top", "random"), control_of("top_help", "random")
    ('random', 'random_help')
    """
    return control + ranking.removeprefix("top")


def distinct_sets(conditions: Sequence[Condition]) -> list[frozenset[Head]]:
    """Each set of heads once, in order of first use: equal sets need one run."""
    return list(dict.fromkeys(condition.heads for condition in conditions))


def single_heads(all_heads: Sequence[Head]) -> list[Condition]:
    """Each head alone."""
    return [Condition("single", 1, 0, frozenset([head])) for head in all_heads]


def heads_of(layers: int, heads: int) -> list[Head]:
    """Every head of a model."""
    return [(layer, head) for layer in range(layers) for head in range(heads)]


def head_masks(sets: Sequence[frozenset[Head]], layers: int, heads: int) -> Tensor:
    """Sets of heads as booleans [C, L, H]."""
    masks = torch.zeros(len(sets), layers, heads, dtype=torch.bool)
    for row, chosen in enumerate(sets):
        for layer, head in chosen:
            masks[row, layer, head] = True
    return masks


def _controls(
    ranking: str,
    ranked: Sequence[Head],
    size: int,
    all_heads: Sequence[Head],
    draws: int,
    seed: int,
) -> Iterator[Condition]:
    top = ranked[:size]
    outside = [head for head in all_heads if head not in set(top)]
    yield Condition(control_of(ranking, "lowest"), size, 0, frozenset(ranked[-size:]))
    for draw in range(draws):
        chosen = np.random.default_rng([seed, size, draw]).permutation(len(outside))[:size]
        heads = frozenset(outside[i] for i in chosen)
        yield Condition(control_of(ranking, "random"), size, draw, heads)
        if ranking == "top":
            heads = _depth_matched(top, outside, np.random.default_rng([seed, size, draw, 1]))
            yield Condition("depth_matched", size, draw, heads)


def _depth_matched(
    top: Sequence[Head], outside: Sequence[Head], rng: np.random.Generator
) -> frozenset[Head]:
    chosen: set[Head] = set()
    for layer, count in sorted(Counter(layer for layer, _ in top).items()):
        order = rng.permutation(len(outside))
        free = [outside[i] for i in order if outside[i] not in chosen]
        free.sort(key=lambda head: abs(head[0] - layer))  # stable: random within a distance
        chosen.update(free[:count])
    return frozenset(chosen)

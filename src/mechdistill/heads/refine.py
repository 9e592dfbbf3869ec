"""RefineScore (Eq. 3): heads that look back at the shortlist and widen the margin.

Shapes: B batch rows, H heads, Q query positions, P mention positions whose keys were read,
D width of a head, d width of the residual stream. A value that is not defined (no mention before
the position) is NaN, and means leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

ATTENDED = 0.3
"""Attention above which the text before Eq. 3 calls a shortlist mention an attended key."""


def mean_cosine(query: Tensor, key: Tensor, members: Tensor) -> Tensor:
    """``E_{p in set} cos(q^h_q, k^h_p)``: Sim_short or Sim_near.

    Args:
        query: [B, H, Q, D]; after rotary as they enter the logits, or before for the variant.
        key: [B, H, P, D], likewise; under grouped queries the group's key for each head.
        members: bool [B, Q, P]: which mentions belong to the set of each query position.

    Returns:
        [B, H, Q]; NaN where the set is empty.
    """
    return _mean_over(_cosines(query, key), members)


def loop_back(query: Tensor, key: Tensor, shortlist: Tensor, near_miss: Tensor) -> Tensor:
    """``Sim_short(q) - Sim_near(q)``, the QK factor of Eq. 3.

    Args:
        query: [B, H, Q, D].
        key: [B, H, P, D].
        shortlist: bool [B, Q, P]: mentions before q that the trace finally keeps.
        near_miss: bool [B, Q, P]: mentions before q that the trace finally rejects.

    Returns:
        [B, H, Q]; NaN where either set is empty.
    """
    cosines = _cosines(query, key)
    return _mean_over(cosines, shortlist) - _mean_over(cosines, near_miss)


def helpfulness(writes: Tensor, gradient: Tensor) -> Tensor:
    """``<Delta^h(q), d margin(q) / d h(q)>``, the OV factor of Eq. 3, in logits.

    Args:
        writes: what each head adds to the residual stream [B, H, Q, d].
        gradient: of the margin at the same position [B, Q, d]: with respect to h_final (the
            direct effect, as printed) or to the residual after the head's layer (total).

    Returns:
        [B, H, Q].
    """
    return torch.einsum("bhqd,bqd->bhq", writes, gradient)


def helpfulness_cosine(writes: Tensor, gradient: Tensor) -> Tensor:
    """``cos(Delta^h(q), d margin(q) / d h(q))``, as Figure 7 shows it; arguments as above."""
    return cosine_similarity(writes, gradient[:, None], dim=-1)


def attended_mixed(
    rows: Tensor, value: Tensor, members: Tensor, *, threshold: float = ATTENDED
) -> tuple[Tensor, Tensor]:
    """Values mixed over the attended shortlist mentions only (text before Eq. 3).

    ``sum_{p in shortlist, alpha > 0.3} alpha_{q,p} v_p``; the output projection makes the write
    of it. At most three keys can pass the threshold and mostly none does.

    Args:
        rows: attention weights at the mentions [B, H, Q, P].
        value: value vectors at the mentions [B, H, P, D].
        members: bool [B, Q, P]: the shortlist of each query position.
        threshold: a key is attended above it.

    Returns:
        The mixed values [B, H, Q, D], zero where no key is attended, and whether any is [B, H, Q].
    """
    attended = (rows > threshold) & members[:, None]
    return (rows * attended).to(value.dtype) @ value, attended.any(-1)


def refine_score(qk: Tensor, ov: Tensor) -> Tensor:
    """QK factor times OV factor, the product inside the expectation of Eq. 3."""
    return qk * ov


def match_on_distance(
    shortlist: Sequence[int], near_miss: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Equally many shortlist and near-miss mentions at like distances from the query.

    After the rotary embedding a cosine falls with distance, and near-misses are often named
    closer to the query than the label that is kept. Mentions are paired one to one, closest
    pair first; what finds no partner is left out.

    Args:
        shortlist: positions of mentions, all before the same query.
        near_miss: likewise.
    """
    pairs = sorted((abs(s - n), s, n) for s in shortlist for n in near_miss)
    kept: set[int] = set()
    partners: set[int] = set()
    for _, s, n in pairs:
        if s not in kept and n not in partners:
            kept.add(s)
            partners.add(n)
    return tuple(sorted(kept)), tuple(sorted(partners))


def _cosines(query: Tensor, key: Tensor) -> Tensor:
    """[B, H, Q, P]."""
    return normalize(query, dim=-1) @ normalize(key, dim=-1).transpose(-1, -2)


def _mean_over(cosines: Tensor, members: Tensor) -> Tensor:
    """[B, H, Q]; NaN where the set is empty."""
    count = members.sum(-1)[:, None]
    mean = (cosines * members[:, None]).sum(-1) / count.clamp_min(1)
    return mean.masked_fill(count == 0, torch.nan)

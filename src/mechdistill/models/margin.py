"""The decision margin of a token against its foils, and its gradients (Eq. 7, Eq. 3).

margin(q) = mean logit of the targets - mean logit of the foils at position q.

Targets and foils are token ids [..., k], padded with -1; the means run over the valid ids.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mechdistill.models.branches import Trunk, run_branches
from mechdistill.models.read_out import ReadOut, token_rows


def margin(logits: Tensor, targets: Tensor, foils: Tensor) -> Tensor:
    """Margins (Eq. 7).

    Args:
        logits: [..., V]. targets, foils: ids [..., k], padded with -1.

    Returns:
        [...]; 0 where a position has no valid target or no valid foil.
    """
    return _mean_of(logits, targets) - _mean_of(logits, foils)


def decision_margin(logits: Tensor, target: Tensor, foils: Tensor) -> Tensor:
    """How surely a decision is taken: logit of the target less the highest of the foils'.

    Args:
        logits: [..., V]. target: id [...]. foils: ids [..., k], padded with -1, at least one each.

    Returns:
        [...]; > 0 where the target beats every foil.
    """
    shape = logits.shape[:-1]
    taken = logits.gather(-1, target.expand(shape)[..., None])[..., 0]
    ids = foils.expand(*shape, foils.shape[-1])
    rivals = logits.gather(-1, ids.clamp(min=0)).masked_fill(ids < 0, -torch.inf)
    return taken - rivals.max(-1).values


def final_margin(model: Any, residual: Tensor, targets: Tensor, foils: Tensor) -> Tensor:
    """Margins [...] of h_final, the residual before the final norm [..., d].

    Args:
        targets, foils: ids [..., k], padded with -1.
    """
    read_out = ReadOut.of(model)
    if read_out.cap is None:
        return (read_out.normed(residual) * margin_direction(model, targets, foils)).sum(-1)

    def mean_logit(ids: Tensor) -> Tensor:
        logits = read_out.logits(residual[..., None, :], token_rows(model, ids))
        return (logits * (ids >= 0)).sum(-1) / (ids >= 0).sum(-1).clamp(min=1)

    return mean_logit(targets) - mean_logit(foils)


def margin_direction(
    model: Any, targets: Tensor, foils: Tensor, residual: Tensor | None = None
) -> Tensor:
    """Gradient of the margin with respect to the final normed residual.

    Mean unembedding row of the targets minus mean row of the foils; where the family caps its
    logits, each row times the cap's slope at its logit.

    Args:
        targets, foils: ids [..., k], padded with -1.
        residual: h_final [..., d]; needed where logits are capped.

    Returns:
        [..., d].
    """
    read_out = ReadOut.of(model)
    if read_out.cap is not None and residual is None:
        raise ValueError("with capped logits the direction depends on the residual: give it")

    def mean_row(ids: Tensor) -> Tensor:
        rows = token_rows(model, ids)
        if residual is not None:
            rows = read_out.sloped(residual[..., None, :], rows)
        return rows.sum(-2) / (ids >= 0).sum(-1, keepdim=True).clamp(min=1)

    return mean_row(targets) - mean_row(foils)


def margin_gradient(
    model: Any, residual: Tensor, targets: Tensor, foils: Tensor, *, frozen_scale: bool = False
) -> Tensor:
    """Gradient of the margin with respect to h_final, the residual before the final norm (Eq. 3).

    Args:
        residual: h_final [..., d]. targets, foils: ids [..., k], padded with -1.
        frozen_scale: see `ReadOut.through_norm`.

    Returns:
        [..., d].
    """
    direction = margin_direction(model, targets, foils, residual)
    return ReadOut.of(model).through_norm(residual, direction, frozen_scale=frozen_scale)


def total_margin_gradients(
    model: Any, trunk: Trunk, queries: Tensor, targets: Tensor, foils: Tensor
) -> Tensor:
    """Gradient of each slot's own margin with respect to the residual after each layer.

    Counts all paths from a layer to the margin, later layers included. Each slot is rerun as a
    branch over the keys of the plain run, so a slot's margin never sees another slot's residual and
    one backward pass serves them all.

    Args:
        trunk: the plain run.
        queries: positions on the padded axis [B, Q], -1 = unused.
        targets, foils: ids [B, Q, k], padded with -1.

    Returns:
        [L, B, Q, d]: entry l is taken right after layer l (its last one equals `margin_gradient`).
    """
    with torch.enable_grad():
        branch = run_branches(model, trunk, queries, residuals=True)
        margins = margin(branch.logits, targets, foils).where(queries >= 0, 0.0)
        gradients = torch.autograd.grad(margins.sum(), branch.residuals)
    return torch.stack(gradients)


def _mean_of(logits: Tensor, ids: Tensor) -> Tensor:
    valid = ids >= 0
    taken = logits.gather(-1, ids.clamp(min=0)) * valid
    return taken.sum(-1) / valid.sum(-1).clamp(min=1)

"""The decision margin of a token against its foils, and its gradients (Eq. 7, Eq. 3).

margin(q) = mean logit of the targets - mean logit of the foils at position q.

Targets and foils are token ids [..., k], padded with -1; the means run over the valid ids.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mechdistill.models.branches import rerun
from mechdistill.models.families import family_of


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


def margin_direction(model: Any, targets: Tensor, foils: Tensor) -> Tensor:
    """The direction whose product with the final normed residual is the margin.

    Mean unembedding row of the targets minus mean row of the foils.

    Args:
        targets, foils: ids [..., k], padded with -1.

    Returns:
        [..., d].
    """
    rows = family_of(model).unembedding(model).weight
    return _mean_rows(rows, targets) - _mean_rows(rows, foils)  # type: ignore[arg-type]


def margin_gradient(
    model: Any, residual: Tensor, targets: Tensor, foils: Tensor, *, frozen_scale: bool = False
) -> Tensor:
    """Gradient of the margin with respect to h_final, the residual before the final norm (Eq. 3).

    Args:
        residual: h_final [..., d]. targets, foils: ids [..., k], padded with -1.
        frozen_scale: see `through_final_norm`.

    Returns:
        [..., d].
    """
    gain, epsilon = family_of(model).final_norm(model)
    weighted = gain * margin_direction(model, targets, foils)
    return through_final_norm(residual, weighted, epsilon, frozen_scale=frozen_scale)


def through_final_norm(
    residual: Tensor, weighted: Tensor, epsilon: float, *, frozen_scale: bool = False
) -> Tensor:
    """Gradient of <w, y> at h, for the RMS norm y = g h / s with s = sqrt(mean(h^2) + eps).

    Closed form: (g w) / s - h <h, g w> / (d s^3).

    Args:
        residual: h [..., d].
        weighted: g w [..., d], the norm's gain times a direction in the normed residual.
        frozen_scale: hold s constant (no second term): the product is then linear in h.

    Returns:
        [..., d].
    """
    scale = (residual.pow(2).mean(-1, keepdim=True) + epsilon).sqrt()
    gradient = weighted / scale
    if frozen_scale:
        return gradient
    along = (residual * weighted).sum(-1, keepdim=True)
    return gradient - residual * along / (residual.shape[-1] * scale**3)


def total_margin_gradients(
    model: Any, ids: Tensor, mask: Tensor, queries: Tensor, targets: Tensor, foils: Tensor
) -> Tensor:
    """Gradient of each slot's own margin with respect to the residual after each layer.

    Counts all paths from a layer to the margin, later layers included. Each slot is rerun as a
    branch over the keys of the plain run, so a slot's margin never sees another slot's residual and
    one backward pass serves them all.

    Args:
        ids, mask: left-padded batch [B, T].
        queries: positions on the padded axis [B, Q], -1 = unused.
        targets, foils: ids [B, Q, k], padded with -1.

    Returns:
        [L, B, Q, d]: entry l is taken right after layer l (its last one equals `margin_gradient`).
    """
    with torch.enable_grad():
        branch = rerun(model, ids, mask, queries, residuals=True)
        margins = margin(branch.logits, targets, foils).where(queries >= 0, 0.0)
        gradients = torch.autograd.grad(margins.sum(), branch.residuals)
    return torch.stack(gradients)


def _mean_of(logits: Tensor, ids: Tensor) -> Tensor:
    valid = ids >= 0
    taken = logits.gather(-1, ids.clamp(min=0)) * valid
    return taken.sum(-1) / valid.sum(-1).clamp(min=1)


def _mean_rows(rows: Tensor, ids: Tensor) -> Tensor:
    valid = ids >= 0
    taken = rows[ids.clamp(min=0)] * valid[..., None]
    return taken.sum(-2) / valid.sum(-1, keepdim=True).clamp(min=1)

"""CoarseScore (Eq. 1): heads that attend sharply and write towards the anchors.

Shapes: B batch rows, H heads, Q query positions, K keys, d width of the residual stream.
A value that is not defined (too few keys, no position) is NaN, and means leave it out.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

EPSILON = 1e-6
"""The stabilising constant printed in Appendix B."""


def kurtosis(rows: Tensor, visible: Tensor, *, minimum_keys: int) -> Tensor:
    """Excess kurtosis of attention rows, of the rows times their number of keys.

    Appendix B: ``kappa = m4 / (m2 + eps)^2 - 3`` with biased moments over the n visible keys.
    The variance of a row falls like 1/n^2, so that on raw rows the printed eps swamps it at long
    context and flat rows fall to -3 (`kurtosis_as_printed`). Kurtosis does not depend on scale:
    rows times n have a variance of order 1 and the same value with a harmless eps.

    Args:
        rows: attention weights [..., K]; what lies outside `visible` is not read.
        visible: bool [..., K], broadcast against `rows`.
        minimum_keys: a row with fewer visible keys has no kurtosis (NaN): 0/0 for one key,
            always -2 for two.

    Returns:
        [...] in fp32 or wider; -3 for a uniform row.
    """
    return _kurtosis(rows, visible, minimum_keys, times_keys=True)


def kurtosis_as_printed(rows: Tensor, visible: Tensor, *, minimum_keys: int) -> Tensor:
    """Excess kurtosis of raw attention rows with eps = 1e-6, to the letter of Appendix B.

    Arguments and shapes as `kurtosis`, which says why the two part at long context.
    """
    return _kurtosis(rows, visible, minimum_keys, times_keys=False)


def change_by_epsilon(rows: Tensor, visible: Tensor, *, minimum_keys: int) -> Tensor:
    """How much the printed eps moves the fourth standardised moment: ``|k_eps - k| / (k + 3)``.

    Relative to kappa + 3, which is at least 1, since kappa itself passes through zero.

    Arguments and shapes as `kurtosis`; NaN also for a uniform row, which has no moment.
    """
    wide = rows.double()
    printed = kurtosis_as_printed(wide, visible, minimum_keys=minimum_keys)
    moment = kurtosis(wide, visible, minimum_keys=minimum_keys) + 3
    return ((printed + 3 - moment).abs() / moment).masked_fill(moment == 0, torch.nan)


def log_kurtosis(kappa: Tensor) -> Tensor:
    """``log10(1 + max(kappa, 0))``: the scale of tables and losses; NaN stays NaN.

    Raw kurtosis grows with the number of keys (a one-hot row over n keys has about n - 5).
    """
    return torch.log10(1 + kappa.clamp_min(0))


def drop_sinks(rows: Tensor, visible: Tensor, sinks: Tensor) -> tuple[Tensor, Tensor]:
    """Rows without the attention sinks, adding to one again, and the keys that remain.

    A row that rests on the first token has the highest kurtosis of all and says nothing.

    Args:
        rows: attention weights [..., K].
        visible: bool [..., K], broadcast against `rows`.
        sinks: bool [..., K], broadcast against `rows`: keys to leave out.

    Returns:
        The rows [..., K], zero on dropped keys; zero everywhere where no mass was left. The
        remaining visible keys, bool, shape of `visible` and `sinks` broadcast.
    """
    kept = visible & ~sinks
    remaining = rows * kept
    mass = remaining.sum(-1, keepdim=True)
    return remaining / mass.clamp_min(torch.finfo(rows.dtype).tiny), kept


def anchor_alignment(writes: Tensor, anchor: Tensor) -> Tensor:
    """``cos(Delta^h(q), c_anchor(x))``, the second factor of Eq. 1.

    Args:
        writes: what each head adds to the residual stream [B, H, Q, d].
        anchor: centroid of the anchors in the same residual space [B, d].

    Returns:
        [B, H, Q]; 0 where either vector is zero.
    """
    return cosine_similarity(writes, anchor[:, None, None, :], dim=-1)


def coarse_score(kappa: Tensor, alignment: Tensor) -> Tensor:
    """``kappa * cos``, the product inside the expectation of Eq. 1; shapes as its factors."""
    return kappa * alignment


def attention_mass(rows: Tensor, keys: Tensor) -> Tensor:
    """Attention mass on a set of keys: baseline scores that look at nothing else.

    Args:
        rows: attention weights [B, H, Q, K].
        keys: bool [B, Q, K] or [B, 1, K]: the set, per query position or for all.

    Returns:
        [B, H, Q]; NaN where the set is empty.
    """
    mass = (rows * keys[:, None]).sum(-1)
    return mass.masked_fill(~keys.any(-1)[:, None], torch.nan)


def _kurtosis(rows: Tensor, visible: Tensor, minimum_keys: int, *, times_keys: bool) -> Tensor:
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))  # m4 underflows in half
    n = visible.sum(-1, keepdim=True)
    seen = visible.to(wide.dtype)  # as a number once, and not for each head
    values = wide * (seen * n if times_keys else seen)
    divisor = n.clamp_min(1)
    mean = values.sum(-1, keepdim=True) / divisor
    squares = torch.addcmul(values, mean, seen, value=-1).square()  # 0 on what is not visible
    variance = squares.sum(-1) / divisor.squeeze(-1)
    fourth = torch.linalg.vector_norm(squares, dim=-1).square() / divisor.squeeze(-1)
    kappa: Tensor = fourth / (variance + EPSILON).square() - 3
    return kappa.masked_fill(n.squeeze(-1) < minimum_keys, torch.nan)

"""Attention written out: rows of some queries, their mixtures, and whole passes in blocks of rows.

Letters in shapes are those of `mechdistill.models.tap`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

BLOCK = 256
"""Queries whose rows are in memory at once in `capped_attention`."""


def attention_rows(
    query: Tensor, key: Tensor, visible: Tensor, scaling: float, cap: float | None = None
) -> Tensor:
    """Rows [B, H, Q, K] in fp32; 0 on invisible keys, and all 0 where a query sees no key.

    Args:
        query: [B, H, Q, D]. key: [B, KV, K, D]. visible: [B, Q, K].
        cap: soft-capping, logits = cap * tanh(logits / cap); None is none.
    """
    logits = _by_group(query, key).matmul(key.transpose(2, 3)).reshape(*query.shape[:3], -1)
    logits = logits.float()
    if cap is not None:
        logits, scaling = torch.tanh(logits * (scaling / cap)), cap
    # a mask that is the same for all heads is added in a fourth of the time it takes to fill it in
    hidden = (~visible[:, None]).float() * torch.finfo(torch.float32).min
    rows = torch.softmax(torch.add(hidden, logits, alpha=scaling), dim=-1)
    sees = visible.any(-1)
    return rows if sees.all() else rows * sees[:, None, :, None]


def mix(rows: Tensor, value: Tensor) -> Tensor:
    """Mixed values [B, H, Q, D] of rows [B, H, Q, K] over values [B, KV, K, D]."""
    mixed = _by_group(rows.to(value.dtype), value).matmul(value)
    return mixed.reshape(*rows.shape[:3], -1)


def capped_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    scaling: float,
    cap: float,
    dropout: float = 0.0,
) -> Tensor:
    """Attention with soft-capped logits, which no fused kernel here computes.

    Goes over blocks of queries, and over each again for the gradient, so that memory grows with
    the number of keys and not with its square.

    Args:
        query: [B, H, T, D]. key, value: [B, KV, K, D].
        mask: [B or 1, 1, T, K], true where a key is visible; None is plain causal attention, the
            queries being the last of the keys.

    Returns:
        mixed values [B, T, H, D].
    """
    queries, keys = query.shape[2], key.shape[2]

    def of_block(part: Tensor, key: Tensor, value: Tensor, visible: Tensor) -> Tensor:
        rows = attention_rows(part, key, visible, scaling, cap)
        return mix(functional.dropout(rows, dropout), value)

    parts = []
    for start in range(0, queries, BLOCK):
        block = slice(start, min(start + BLOCK, queries))
        if mask is None:
            last = torch.arange(block.start, block.stop, device=key.device) + keys - queries
            visible = (torch.arange(keys, device=key.device) <= last[:, None])[None]
        else:
            visible = mask[:, 0, block]
        given = query[:, :, block], key, value, visible
        if torch.is_grad_enabled() and queries > BLOCK:
            parts.append(checkpoint(of_block, *given, use_reentrant=False))
        else:
            parts.append(of_block(*given))
    return torch.cat(parts, dim=2).transpose(1, 2)


def _by_group(x: Tensor, key: Tensor) -> Tensor:
    """[B, H, Q, N] -> [B, KV, (H / KV) Q, N]: the heads that share a key head become its rows.

    So one product serves the group, and keys and values are not repeated for it.
    """
    return x.reshape(x.shape[0], key.shape[1], -1, x.shape[-1])

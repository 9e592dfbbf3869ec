"""Attention rows over groups of tokens, in which models of different tokenizers can be compared."""

from __future__ import annotations

import torch
from torch import Tensor


def group_rows(rows: Tensor, groups: Tensor, count: int) -> Tensor:
    """Mass of each group: the sum over its tokens, which keeps a row's mass.

    Args:
        rows: attention weights [B, Q, K].
        groups: group of each key [B, K], from 0 on; -1 for keys in no group: special tokens,
            padding (see `mechdistill.data.alignment`).
        count: number of groups G.

    Returns:
        [B, Q, G + 1]; the last column is the bucket of the keys in no group.
    """
    columns = torch.where(groups < 0, count, groups)
    members = torch.nn.functional.one_hot(columns, count + 1).to(rows.dtype)
    return rows @ members

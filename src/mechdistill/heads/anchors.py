"""The anchor centroid c_anchor(x) in a model's residual space, three ways.

The paper multiplies a head's write (width of the model) with embeddings of a text encoder (another
width). Everything that meets a write must live in the model's own residual space; which of its
spaces is a choice that can decide where the early heads are found, so all three are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

AnchorSpace = Literal["unembed", "embed", "context"]
ANCHOR_SPACES: tuple[AnchorSpace, ...] = get_args(AnchorSpace)


def unembed_anchor(unembedding: Tensor, gain: Tensor, anchors: Sequence[Sequence[int]]) -> Tensor:
    """The direction of the residual stream that raises the anchors' logits over all others.

    Mean over anchors of the mean of their tokens' unembedding rows, the mean row of the matrix
    removed (it raises every logit alike), times the gain of the final norm.

    Args:
        unembedding: [V, d].
        gain: of the final norm [d].
        anchors: token ids of each anchor of one example.

    Returns:
        [d].
    """
    centroid = _centroid(unembedding, anchors)
    return (centroid - unembedding.mean(0, dtype=centroid.dtype)) * gain


def embed_anchor(embedding: Tensor, anchors: Sequence[Sequence[int]]) -> Tensor:
    """Mean over anchors of the mean of their tokens' input embeddings; shapes as above."""
    return _centroid(embedding, anchors)


def context_anchor(residual: Tensor, mentions: Tensor) -> Tensor:
    """Mean residual at the anchors' mentions in the prompt, where the head's layer reads them.

    Args:
        residual: the stream that enters the layer [B, T, d].
        mentions: bool [B, T].

    Returns:
        [B, d]; zero for an example that names no anchor in its prompt.
    """
    weights = mentions.to(residual.dtype)
    total = torch.einsum("bt,btd->bd", weights, residual)
    wide = total.to(torch.promote_types(residual.dtype, torch.float32))
    return wide / mentions.sum(1, True).clamp_min(1)


def _centroid(rows: Tensor, anchors: Sequence[Sequence[int]]) -> Tensor:
    if not anchors or not all(anchors):
        raise ValueError("an example needs at least one anchor, and each anchor a token")
    wide = torch.promote_types(rows.dtype, torch.float32)
    return torch.stack([rows[list(ids)].mean(0, dtype=wide) for ids in anchors]).mean(0)

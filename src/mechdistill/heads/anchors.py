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


Anchors = Sequence[Sequence[int]]
"""Token ids of each anchor of one example."""


def unembed_anchors(unembedding: Tensor, gain: Tensor, examples: Sequence[Anchors]) -> Tensor:
    """The directions of the residual stream that raise the anchors' logits over all others.

    Mean over an example's anchors of the mean of their tokens' unembedding rows, the mean row of
    the matrix removed (it raises every logit alike), times the gain of the final norm.

    Args:
        unembedding: [V, d].
        gain: of the final norm [d].
        examples: anchors of each, B of them.

    Returns:
        [B, d].

    Raises:
        ValueError: an example has no anchor, or an anchor no token.
    """
    centroids = embed_anchors(unembedding, examples)
    return (centroids - unembedding.mean(0, dtype=centroids.dtype)) * gain


def embed_anchors(embedding: Tensor, examples: Sequence[Anchors]) -> Tensor:
    """Mean over anchors of the mean of their tokens' input embeddings; shapes as above."""
    return torch.stack([_centroid(embedding, anchors) for anchors in examples])


def context_anchor(residual: Tensor, mentions: Tensor) -> Tensor:
    """Mean residual at the anchors' mentions in the prompt, where the head's layer reads them.

    Args:
        residual: the stream that enters the layer [B, T, d].
        mentions: bool [B, T].

    Returns:
        [B, d]; zero for an example that names no anchor in its prompt.
    """
    weights = mentions.to(residual.dtype)
    total = (weights[:, None] @ residual)[:, 0]
    wide = total.to(torch.promote_types(residual.dtype, torch.float32))
    return wide / mentions.sum(1, True).clamp_min(1)


def _centroid(rows: Tensor, anchors: Anchors) -> Tensor:
    if not anchors or not all(anchors):
        raise ValueError("an example needs at least one anchor, and each anchor a token")
    wide = torch.promote_types(rows.dtype, torch.float32)
    return torch.stack([rows[list(ids)].mean(0, dtype=wide) for ids in anchors]).mean(0)

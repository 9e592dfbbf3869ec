"""The tokens that all prompts of a run begin with, read once.

A candidate list that is the same in all prompts stands first, so that thousands of its tokens cost
one pass, not one for each note. In a left-padded batch a row's keys of the shared beginning stand
where the row begins; so batches, masks, windows and positions are those of the plain run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

LEAST = 100
"""Tokens: a shorter beginning (that of a chat template) is not worth a pass of its own."""


@dataclass(frozen=True)
class SharedPrefix:
    """Keys and values of a beginning of P tokens, layer by layer, [1, KV, P, D]."""

    layers: tuple[tuple[Tensor, Tensor], ...]

    @classmethod
    @torch.no_grad()
    def of(cls, model: Any, prompts: Sequence[Sequence[int]]) -> SharedPrefix | None:
        """Of what all prompts begin with; None where that is less than `LEAST` tokens."""
        length = common_beginning(prompts)
        if length < LEAST:
            return None
        cache = DynamicCache()
        ids = torch.tensor([list(prompts[0][:length])], device=model.device)
        model(ids, cache=cache, use_cache=True, logits_to_keep=1)
        layers: Any = cache.layers
        return cls(tuple((layer.keys, layer.values) for layer in layers))

    @property
    def length(self) -> int:
        return self.layers[0][0].shape[2]

    def cache(self, mask: Tensor) -> DynamicCache:
        """Keys and values of the first P columns of a left-padded batch; the rest is to be read.

        A row that begins later has fewer of them there; its others are read again with the rest.

        Args:
            mask: of the batch, [B, T].
        """
        columns = torch.arange(self.length, device=mask.device) - padding(mask)[:, None]
        known = (columns >= 0)[:, None, :, None]
        at = columns.clamp(min=0)
        return DynamicCache(
            [
                tuple(part[0][:, at].transpose(0, 1) * known for part in layer)
                for layer in self.layers
            ]
        )


def common_beginning(prompts: Sequence[Sequence[int]]) -> int:
    """Tokens that all prompts begin with, at least one less than the shortest one has.

    >>> common_beginning([[1, 2, 3, 4], [1, 2, 5]]), common_beginning([[1, 2], [1, 2]])
    (2, 1)
    """
    first, shortest = prompts[0], min(map(len, prompts))
    for index in range(shortest - 1):
        if any(prompt[index] != first[index] for prompt in prompts):
            return index
    return shortest - 1


def padding(mask: Tensor) -> Tensor:
    """Pads before each row of a left-padded batch [B]."""
    return (mask == 0).sum(1)


def own_positions(mask: Tensor) -> Tensor:
    """Positions of the tokens counted from each row's own start [B, T]; 0 for padding."""
    return (mask.cumsum(1) - 1).clamp(min=0)

"""Sequences of unequal length as one left-padded batch, and positions in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Left-padded token ids.

    Args:
        ids: [B, T].
        mask: 1 for tokens, 0 for padding, [B, T] (int64, as transformers wants it).
        offset: pads before each sequence, [B]: its position i is offset + i here.
    """

    ids: Tensor
    mask: Tensor
    offset: Tensor

    def positions(self, positions: Sequence[Sequence[int]]) -> Tensor:
        """Positions of the unpadded sequences on the padded axis.

        Args:
            positions: one list a sequence; lengths may differ.

        Returns:
            [B, Q] with -1 in the slots that a shorter list leaves over; Q >= 1.
        """
        if len(positions) != len(self.ids):
            raise ValueError(f"{len(positions)} lists of positions for {len(self.ids)} sequences")
        slots = pad_right(positions, -1, self.offset.device)
        return torch.where(slots >= 0, slots + self.offset[:, None], -1)


def left_pad(
    sequences: Sequence[Sequence[int]], pad_id: int, device: torch.device | None = None
) -> Batch:
    """One batch from sequences of token ids, the last tokens aligned."""
    lengths = [len(sequence) for sequence in sequences]
    width = max(lengths)
    ids = [[pad_id] * (width - len(sequence)) + list(sequence) for sequence in sequences]
    offset = width - torch.tensor(lengths, device=device)
    mask = (torch.arange(width, device=device) >= offset[:, None]).long()
    return Batch(torch.tensor(ids, device=device), mask, offset)


def pad_right(
    rows: Sequence[Sequence[int]], fill: int, device: torch.device | None = None
) -> Tensor:
    """Integers of unequal counts as one tensor [B, max count], at least one column wide."""
    width = max([1, *(len(row) for row in rows)])
    padded = [list(row) + [fill] * (width - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long, device=device).view(len(rows), width)

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
        slots = pad_right(positions, -1)
        return torch.where(slots >= 0, slots + self.offset[:, None], -1)


def left_pad(sequences: Sequence[Sequence[int]], pad_id: int) -> Batch:
    """One batch from sequences of token ids, the last tokens aligned."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    width = int(lengths.max())
    ids = torch.full((len(sequences), width), pad_id)
    for row, sequence in enumerate(sequences):
        ids[row, width - len(sequence) :] = torch.as_tensor(sequence)
    offset = width - lengths
    mask = (torch.arange(width) >= offset[:, None]).long()
    return Batch(ids, mask, offset)


def pad_right(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """Integers of unequal counts as one tensor [B, max count], at least one column wide."""
    width = max([1, *(len(row) for row in rows)])
    padded = torch.full((len(rows), width), fill)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return padded

"""Tensors of unequal shapes, one an example, end to end beside their shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def end_to_end(name: str, values: Sequence[Tensor]) -> dict[str, Tensor]:
    """The values under `name` and their shapes under `name`.shape; of as many dimensions each."""
    if not values:
        return {name: torch.zeros(0), f"{name}.shape": torch.zeros(0, 1, dtype=torch.long)}
    return {
        f"{name}.shape": torch.tensor([value.shape for value in values]),
        name: torch.cat([value.flatten() for value in values]),
    }


def taken_apart(tensors: Mapping[str, Tensor], name: str) -> list[Tensor]:
    """What `end_to_end` was given.

    Raises:
        KeyError, RuntimeError: it is not there, or the shapes do not fit it.
    """
    shapes = tensors[f"{name}.shape"]
    parts = torch.split(tensors[name], shapes.prod(1).tolist())
    return [part.view(shape) for part, shape in zip(parts, shapes.tolist())]

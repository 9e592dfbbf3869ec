"""Put a batch, or what a method keeps, on the device of the weights."""

from __future__ import annotations

import copy
from dataclasses import is_dataclass
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def placed(value: T, device: torch.device) -> T:
    """A tensor, or a dataclass with all tensors in it and in the dataclasses that it holds.

    What the dataclass has computed and kept of itself moves along.
    """
    if isinstance(value, Tensor):
        return value.to(device)  # type: ignore[return-value]
    if not is_dataclass(value):
        return value
    moved = copy.copy(value)
    for name, held in vars(value).items():
        object.__setattr__(moved, name, placed(held, device))
    return moved

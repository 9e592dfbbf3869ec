"""The numbers that weights are trained in."""

from __future__ import annotations

from typing import Any

import torch

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def to_precision(model: Any, weights: str) -> Any:
    """The model with its parameters in this format, and gradients and optimisers' states with them.

    Buffers stay as they are: positions are rotated by angles in fp32 whatever the weights are. To
    float32 nothing is lost.

    Args:
        weights: key of `DTYPES`.
    """
    for parameter in model.parameters():
        parameter.data = parameter.data.to(DTYPES[weights])
        parameter.grad = None
    return model

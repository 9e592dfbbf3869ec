"""Read the residual stream of a forward pass between the layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from mechdistill.models.families import family_of


@dataclass
class ResidualStream:
    """The stream [B, T, d] where it enters each layer, and where the last layer leaves it.

    Args:
        entering: what is kept of it for each layer, in order.
        leaving: after the last layer; h_final, what the final norm gets.
    """

    entering: list[Tensor] = field(default_factory=list)
    leaving: list[Tensor] = field(default_factory=list)

    @property
    def final(self) -> Tensor:
        """h_final [B, T, d] of the last pass."""
        return self.leaving[-1]


@contextmanager
def reading_residuals(
    model: Any, keep: Callable[[Tensor], Tensor] = lambda entering: entering
) -> Iterator[ResidualStream]:
    """Within the block one forward pass of `model` fills the stream, its graph attached.

    Args:
        keep: what to keep of the stream that enters a layer; all layers' streams whole are more
            memory than the pass itself takes.
    """
    stream = ResidualStream()
    blocks = family_of(model).blocks(model)
    hooks = [
        block.register_forward_pre_hook(lambda module, args: stream.entering.append(keep(args[0])))
        for block in blocks
    ]
    hooks.append(
        blocks[-1].register_forward_hook(
            lambda module, args, output: stream.leaving.append(
                output[0] if isinstance(output, tuple) else output
            )
        )
    )
    try:
        yield stream
    finally:
        for hook in hooks:
            hook.remove()

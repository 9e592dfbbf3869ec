"""Muon for the matrices inside the layers, AdamW for embeddings, read-out and norms.

One optimiser for every method and seed. The learning rate is a function of the step alone
(linear warm-up, then a cosine to zero), so a checkpoint holds no scheduler.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

WEIGHT_DECAY = 0.01
ADAMW_BETAS = (0.9, 0.95)


class ScheduledOptimiser:
    """Optimisers that step together along one schedule.

    Args:
        parts: by name, each over parameters of its own.
        peaks: peak rate of each part.
        steps: where the cosine ends.
        warmup_steps: of linear warm-up.
    """

    def __init__(
        self,
        parts: Mapping[str, torch.optim.Optimizer],
        peaks: Mapping[str, float],
        *,
        steps: int,
        warmup_steps: int,
    ) -> None:
        self._parts, self._peaks = dict(parts), dict(peaks)
        self._steps, self._warmup = steps, warmup_steps

    def step(self, number: int) -> float:
        """Update with the gradients at hand as step `number` (from 0); the first part's rate."""
        share = schedule(number, self._steps, self._warmup)
        for name, part in self._parts.items():
            for group in part.param_groups:
                group["lr"] = self._peaks[name] * share
            part.step()
            part.zero_grad(set_to_none=True)
        return next(iter(self._peaks.values())) * share

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors."""
        return {
            f"{name}.{number}.{key}": torch.as_tensor(value)
            for name, part in self._parts.items()
            for number, state in part.state_dict()["state"].items()
            for key, value in state.items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take up the state that `tensors` gave."""
        for name, part in self._parts.items():
            content = part.state_dict()
            content["state"] = {}
            for path, value in tensors.items():
                owner, number, key = path.split(".")
                if owner == name:
                    content["state"].setdefault(int(number), {})[key] = value
            part.load_state_dict(content)


class Optimiser(ScheduledOptimiser):
    """Muon and AdamW as one.

    Args:
        model: its parameters are updated.
        learning_rate: peak rate of Muon.
        adamw_learning_rate: peak rate of AdamW.
        steps, warmup_steps: see `ScheduledOptimiser`.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        learning_rate: float,
        adamw_learning_rate: float,
        steps: int,
        warmup_steps: int,
    ) -> None:
        matrices, others = _split(model)
        parts: dict[str, torch.optim.Optimizer] = {
            "muon": torch.optim.Muon(matrices, lr=learning_rate, weight_decay=WEIGHT_DECAY),
            "adamw": adamw(others, adamw_learning_rate),
        }
        peaks = {"muon": learning_rate, "adamw": adamw_learning_rate}
        super().__init__(parts, peaks, steps=steps, warmup_steps=warmup_steps)


def adamw(parameters: Iterable[nn.Parameter], learning_rate: float) -> torch.optim.AdamW:
    """AdamW as it is used everywhere here."""
    return torch.optim.AdamW(
        parameters, lr=learning_rate, betas=ADAMW_BETAS, weight_decay=WEIGHT_DECAY
    )


def schedule(step: int, steps: int, warmup: int) -> float:
    """Share of the peak rate at a step: linear from 1/warmup to 1, then a cosine towards 0.

    >>> [round(schedule(step, steps=10, warmup=2), 3) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.038]
    """
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))


def _split(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Matrices between residual stream and residual stream, and everything else."""
    apart = {id(parameter) for parameter in _vocabulary_parameters(model)}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in model.parameters():
        inside = parameter.ndim == 2 and id(parameter) not in apart
        (matrices if inside else others).append(parameter)
    return matrices, others


def _vocabulary_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Embedding and read-out: their rows are tokens, which orthogonalised updates would mix."""
    for getter in ("get_input_embeddings", "get_output_embeddings"):
        module = getattr(model, getter)()
        if module is not None:
            yield from module.parameters()

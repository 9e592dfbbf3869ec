"""What the teacher is compared on, computed once: a student trains from this file alone.

One safetensors file. A quantity of all examples lies end to end, beside the shapes of their parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from mechdistill.artifacts import how_to_make, read_tensors, write_tensors
from mechdistill.errors import InputError


@dataclass(frozen=True)
class ExampleTargets:
    """The teacher on one trace.

    n tokens in all, m of them predicted, E early and R refinement positions, k cached tokens.
    """

    kept: Tensor
    """Likeliest tokens [m, k]."""
    log_probabilities: Tensor
    """[m, k + 1], the remainder last."""
    rows: Tensor
    """abar without the sinks [E, n]."""
    alignment: Tensor
    """A [E]."""
    coarse_interaction: Tensor
    """PCS [E]."""
    loop: Tensor
    """R [R]."""
    help: Tensor
    """H [R], in standard deviations of the teacher's margin."""
    refine_interaction: Tensor
    """PRS [R]."""


@dataclass(frozen=True)
class Targets:
    """The teacher on all training traces."""

    examples: Mapping[str, ExampleTargets]
    pool_sizes: Mapping[int, int]
    """Heads in the teacher's pool of each phase: with none, the phase has no signal to learn."""
    minimum_keys: int
    """Visible keys that a row needs to have a kurtosis: the student is read as the teacher was."""


_RAGGED = tuple(field.name for field in fields(ExampleTargets))


def write_targets(path: str | Path, targets: Targets) -> None:
    """Write the cache; examples keep their order."""
    names = list(targets.examples)
    of = [targets.examples[name] for name in names]
    tensors: dict[str, Tensor] = {}
    for field in _RAGGED:
        values = [getattr(example, field) for example in of]
        tensors[f"{field}.shape"] = torch.tensor([value.shape for value in values])
        tensors[field] = torch.cat([value.flatten() for value in values])
    about = {
        "examples": json.dumps(names),
        "minimum_keys": str(targets.minimum_keys),
        "pool_sizes": json.dumps({str(p): size for p, size in targets.pool_sizes.items()}),
    }
    write_tensors(path, tensors, about)


def read_targets(path: str | Path) -> Targets:
    """Read what `write_targets` wrote.

    Raises:
        InputError: the file is missing, damaged or not a cache of teacher targets.
    """
    tensors, about = read_tensors(path)
    try:
        names = json.loads(about["examples"])
        pool_sizes = {int(p): size for p, size in json.loads(about["pool_sizes"]).items()}
        minimum_keys = int(about["minimum_keys"])
        ragged = {field: _split(tensors, field) for field in _RAGGED}
    except (KeyError, RuntimeError) as error:
        raise InputError(
            f"{path} is not a cache of teacher targets ({error})",
            how_to_make(path),
        ) from error
    examples = {
        name: ExampleTargets(**{field: ragged[field][number] for field in _RAGGED})
        for number, name in enumerate(names)
    }
    return Targets(examples, pool_sizes, minimum_keys)


def _split(tensors: Mapping[str, Tensor], field: str) -> Sequence[Tensor]:
    shapes = tensors[f"{field}.shape"]
    parts = torch.split(tensors[field], shapes.prod(1).tolist())
    return [part.view(shape) for part, shape in zip(parts, shapes.tolist())]

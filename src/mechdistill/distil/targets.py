"""What the teacher is compared on, computed once: a student trains from this file alone.

One safetensors file. A quantity of all examples lies end to end, beside the shapes of their parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import torch
from torch import Tensor

from mechdistill.artifacts import how_to_make, read_tensors, write_tensors
from mechdistill.distil.ragged import end_to_end, taken_apart
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.errors import InputError


@dataclass(frozen=True)
class ExampleTargets:
    """The teacher on one trace.

    n keys in all, m predicted tokens, E early and R refinement positions, k cached tokens.
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
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Where the student has another tokenizer, by example: group of each of its tokens, whose
    attention is compared with column g of the rows, or -1. Then no distribution is cached: the
    vocabularies differ."""

    def aligned(self, sequences: Sequence[TrainingSequence]) -> list[TrainingSequence]:
        """The sequences as they can be compared with the teacher.

        Args:
            sequences: in the student's tokens, each the whole of an example's trace or its
                beginning.
        """
        if not self.groups:
            return list(sequences)
        return [
            replace(
                sequence,
                groups=self.groups[sequence.example][: len(sequence.tokens)],
                teacher_rows=(-1,) * len(sequence.predicting),
            )
            for sequence in sequences
        ]

    def left_out(self) -> tuple[str, ...]:
        """What no student of these targets can learn, for the record."""
        return ("cot_kl: student and teacher have different vocabularies",) if self.groups else ()


_RAGGED = tuple(each.name for each in fields(ExampleTargets))
_GROUPS = "groups"


def write_targets(path: str | Path, targets: Targets) -> None:
    """Write the cache; examples keep their order."""
    names = list(targets.examples)
    of = [targets.examples[name] for name in names]
    tensors: dict[str, Tensor] = {}
    ragged = {name: [getattr(example, name) for example in of] for name in _RAGGED}
    if targets.groups:
        ragged[_GROUPS] = [torch.tensor(targets.groups[name]) for name in names]
    for name, values in ragged.items():
        tensors |= end_to_end(name, values)
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
        ragged = {name: taken_apart(tensors, name) for name in _RAGGED}
        groups = taken_apart(tensors, _GROUPS) if _GROUPS in tensors else []
    except (KeyError, RuntimeError) as error:
        raise InputError(
            f"{path} is not a cache of teacher targets ({error})",
            how_to_make(path),
        ) from error
    examples = {
        name: ExampleTargets(**{quantity: ragged[quantity][number] for quantity in _RAGGED})
        for number, name in enumerate(names)
    }
    grouped = {name: tuple(of.tolist()) for name, of in zip(names, groups)}
    return Targets(examples, pool_sizes, minimum_keys, grouped)

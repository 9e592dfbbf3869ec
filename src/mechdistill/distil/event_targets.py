"""The teacher's attention at the decision events of its traces, computed once.

One safetensors file, beside `targets`: what `mistill` trains on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from torch import Tensor

from mechdistill.artifacts import how_to_make, read_tensors, write_tensors
from mechdistill.distil.ragged import end_to_end, taken_apart
from mechdistill.errors import InputError


@dataclass(frozen=True)
class ExampleEvents:
    """The events of one trace, V of them; n keys as in `targets.ExampleTargets.rows`."""

    queries: Tensor
    """Query positions in prompt + trace, in the student's tokens [V]."""
    families: Tensor
    """Places in `traces.decision_events.FAMILIES` [V]."""
    rows: Tensor
    """abar of the teacher without the sinks [V, n]."""


@dataclass(frozen=True)
class EventTargets:
    """The events of all training traces; an example without one is missing."""

    examples: Mapping[str, ExampleEvents]
    sizes: tuple[int, ...]
    """Heads of the teacher's causal set of each family; with none, it has no event here."""


_RAGGED = tuple(each.name for each in fields(ExampleEvents))


def write_event_targets(path: str | Path, targets: EventTargets) -> None:
    """Write the cache; examples keep their order."""
    of = list(targets.examples.values())
    tensors: dict[str, Tensor] = {}
    for name in _RAGGED:
        tensors |= end_to_end(name, [getattr(each, name) for each in of])
    about = {
        "examples": json.dumps(list(targets.examples)),
        "causal_set_sizes": json.dumps(targets.sizes),
    }
    write_tensors(path, tensors, about)


def read_event_targets(path: str | Path) -> EventTargets:
    """Read what `write_event_targets` wrote.

    Raises:
        InputError: the file is missing, damaged or not a cache of events.
    """
    tensors, about = read_tensors(path)
    try:
        names = json.loads(about["examples"])
        sizes = tuple(json.loads(about["causal_set_sizes"]))
        ragged = [taken_apart(tensors, name) for name in _RAGGED]
    except (KeyError, RuntimeError) as error:
        raise InputError(
            f"{path} is not a cache of the teacher's events ({error})", how_to_make(path)
        ) from error
    found = zip(names, *ragged, strict=True)
    return EventTargets({name: ExampleEvents(*parts) for name, *parts in found}, sizes)

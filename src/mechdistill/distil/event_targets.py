"""The teacher's attention at the decision events of its traces, computed once.

One safetensors file, beside `targets`: what `mistill` trains on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from mechdistill.artifacts import how_to_make, read_tensors, write_tensors
from mechdistill.errors import InputError


@dataclass(frozen=True)
class ExampleEvents:
    """The events of one trace, V of them; n keys as in `targets.ExampleTargets.rows`."""

    queries: Tensor
    """Query positions in prompt + trace, in the student's tokens [V]."""
    families: Tensor
    """Places in `event_pools.FAMILIES` [V]."""
    rows: Tensor
    """abar of the teacher without the sinks [V, n]."""


@dataclass(frozen=True)
class EventTargets:
    """The events of all training traces; an example without one is missing."""

    examples: Mapping[str, ExampleEvents]
    sizes: tuple[int, ...]
    """Heads of the teacher's causal set of each family; with none, it has no event here."""


def write_event_targets(path: str | Path, targets: EventTargets) -> None:
    """Write the cache; examples keep their order."""
    of = list(targets.examples.values())
    tensors = {"rows.shape": torch.tensor([each.rows.shape for each in of]).view(-1, 2)}
    for name in ("queries", "families", "rows"):
        parts = [getattr(each, name).flatten() for each in of]
        tensors[name] = torch.cat(parts) if parts else torch.zeros(0)
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
        shapes = tensors["rows.shape"].tolist()
        events = [shape[0] for shape in shapes]
        rows = torch.split(tensors["rows"], [v * n for v, n in shapes])
        queries, families = (torch.split(tensors[n], events) for n in ("queries", "families"))
    except (KeyError, RuntimeError, IndexError) as error:
        raise InputError(
            f"{path} is not a cache of the teacher's events ({error})", how_to_make(path)
        ) from error
    found = zip(names, queries, families, rows, shapes, strict=True)
    return EventTargets(
        {name: ExampleEvents(q, f, row.view(shape)) for name, q, f, row, shape in found}, sizes
    )

"""Read the teacher at the decision events of its training traces."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mechdistill.distil.batch import collate
from mechdistill.distil.event_rows import event_rows, event_tap
from mechdistill.distil.event_targets import EventTargets, ExampleEvents
from mechdistill.distil.forward import run
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.models.batching import pad_right
from mechdistill.progress import track
from mechdistill.traces.decision_events import FAMILIES, DecisionEvent


@dataclass(frozen=True)
class SharedEvent:
    """A decision: where the teacher takes it, where the student does, its family."""

    query: int
    student_query: int
    family: int


def shared_events(
    pairs: Iterable[tuple[DecisionEvent, DecisionEvent]],
) -> list[SharedEvent]:
    """First events of each pick, as the teacher and the student have them."""
    return [
        SharedEvent(own.query, other.query, FAMILIES.index((own.kind, own.segment)))
        for own, other in pairs
        if own.repeat == 0
    ]


@torch.no_grad()
def cache_events(
    teacher: Any,
    sequences: Sequence[TrainingSequence],
    events: Mapping[str, Sequence[SharedEvent]],
    weights: Tensor,
    *,
    batch_size: int,
    pad_id: int,
    special_ids: Collection[int],
) -> EventTargets:
    """Pooled rows of the teacher's causal sets at the events.

    Args:
        teacher: in evaluation mode.
        sequences: the traces that students train on, in the teacher's tokens, one an example.
        events: by example; those of a family without a causal head are left out.
        weights: of heads, by family [F, L, H].
        batch_size: traces a forward pass.
        pad_id, special_ids: of the teacher's tokenizer.
    """
    has_heads = weights.flatten(1).any(-1).tolist()
    kept = {
        sequence.example: [at for at in events.get(sequence.example, ()) if has_heads[at.family]]
        for sequence in sequences
    }
    # like lengths together: less padding
    ordered = sorted(
        (sequence for sequence in sequences if kept[sequence.example]),
        key=lambda sequence: len(sequence.tokens),
    )
    batches = [ordered[i : i + batch_size] for i in range(0, len(ordered), batch_size)]
    found: dict[str, ExampleEvents] = {}
    for chosen in track(batches, "teacher batch"):
        batch = collate(chosen, pad_id, special_ids)
        columns = batch.key_columns()
        at = [kept[sequence.example] for sequence in chosen]
        positions = batch.padded.positions([[event.query for event in of] for of in at])
        family = pad_right([[event.family for event in of] for of in at], -1)
        passed = run(teacher, batch, event_tap(weights, positions))
        rows = event_rows(passed.records, weights, family, batch.slots)
        for row, (sequence, of) in enumerate(zip(chosen, at)):
            found[sequence.example] = ExampleEvents(
                torch.tensor([event.student_query for event in of]),
                torch.tensor([event.family for event in of]),
                rows[row, : len(of), columns[row]].clone(),
            )
    sizes = tuple(int(n) for n in (weights > 0).flatten(1).sum(-1))
    examples = {s.example: found[s.example] for s in sequences if s.example in found}
    return EventTargets(examples, sizes)

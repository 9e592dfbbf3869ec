"""MISTILL, after the paper's second version: L_CoT, and attention at decision events (V09).

Original (arXiv 2606.06840 v2; only its abstract is public): beside the teacher's text, the
student's pooled attention is supervised at exactly the token-level decision events.

Adapted (ours, since the abstract does not say): KL(abar^T || abar^S) as the first term of Eq. 5,
over keys without sinks, at the first events of each pick, in the reasoning and in the answer. The
teacher's heads are those that exceed both nulls at the kind of decision, weighted by their effect
beyond them; the student's are its own pools, phase 1 at regions, phase 2 within and at departures.
A term is a mean over the events of an example and then over examples, and is divided by its value
at step 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mechdistill.distil.batch import TrainingBatch, place_rows
from mechdistill.distil.event_pools import pooled_weights
from mechdistill.distil.event_rows import event_rows, event_tap
from mechdistill.distil.event_targets import ExampleEvents, read_event_targets
from mechdistill.distil.losses import example_mean, rows_kl
from mechdistill.distil.method import Material, StepInputs, Student
from mechdistill.distil.placing import placed
from mechdistill.distil.scaled import ScaledMethod
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.models.batching import pad_right
from mechdistill.models.tap import Tap
from mechdistill.traces.decision_events import FAMILIES, KINDS

TERM = "event_{kind}"


class Mistill(ScaledMethod):
    """L_CoT + sum over kinds of their weight x mean KL of pooled attention at their events."""

    name = "mistill"
    parameters = (
        "distil.lambda_kl",
        "distil.mistill.region",
        "distil.mistill.within",
        "distil.mistill.departure",
    )
    needs = ("event_targets",)
    settings_tried = (
        {},
        {
            "distil.mistill.region": 0.1,
            "distil.mistill.within": 0.1,
            "distil.mistill.departure": 0.1,
        },
        {
            "distil.mistill.region": 1.0,
            "distil.mistill.within": 1.0,
            "distil.mistill.departure": 1.0,
        },
        {"distil.lambda_kl": 0.5},
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._weights: dict[str, float] = {
            kind: float(settings[f"distil.mistill.{kind}"]) for kind in KINDS
        }
        self._empty: list[str] = []

    def read(self, material: Material) -> None:
        """The teacher's rows at the events."""
        self._targets = read_event_targets(material.files["event_targets"])

    def start(self, student: Student, sequences: Sequence[TrainingSequence]) -> None:
        """Leave out families of events for which teacher or student has no head."""
        config = student.model.config
        heads = pooled_weights(
            student.pools, layers=config.num_hidden_layers, heads=config.num_attention_heads
        )
        has_heads = heads.flatten(1).any(-1).tolist()
        self._empty = [
            f"{kind} events of the {segment}: {whose}"
            for (kind, segment), size, own in zip(FAMILIES, self._targets.sizes, has_heads)
            for whose, none in (
                ("no head of the teacher exceeds its nulls", size == 0),
                ("the student's pool is empty", not own),
            )
            if none
        ]
        trained = torch.tensor(
            [own and self._weights[kind] > 0 for (kind, _), own in zip(FAMILIES, has_heads)]
        )
        self._heads = heads * trained[:, None, None]
        kept = {name: _only(of, trained) for name, of in self._targets.examples.items()}
        self._examples = {name: events for name, events in kept.items() if len(events.queries)}
        families = {f for events in self._examples.values() for f in events.families.tolist()}
        self._kinds = [kind for kind in KINDS if any(FAMILIES[f][0] == kind for f in families)]

    def left_out(self) -> tuple[str, ...]:
        """Families of events without heads."""
        return tuple(self._empty)

    def weight(self, term: str) -> float:
        """That of the kind of events."""
        return self._weights[term.removeprefix(TERM.format(kind=""))]

    def tap(self, batch: TrainingBatch) -> Tap | None:
        """Rows of the pools' layers at the events."""
        if not self._examples:
            return None
        events = [self._of_example(name).queries.tolist() for name in batch.examples]
        return event_tap(self._heads, batch.padded.positions(events))

    def positions(self, batch: TrainingBatch) -> dict[str, float]:
        """Examples with an event of each kind."""
        family = self._families(batch)
        return {
            TERM.format(kind=kind): float(_is_kind(family, kind).any(-1).sum())
            for kind in self._kinds
        }

    def terms(self, step: StepInputs) -> dict[str, Tensor]:
        """The KL at the events of each kind, in nats."""
        if not step.passed.records:
            return {}
        batch, device = step.batch, step.passed.hidden.device
        family = self._families(batch).to(device)
        own = event_rows(step.passed.records, placed(self._heads, device), family, batch.slots)
        given = [self._of_example(name).rows for name in batch.examples]
        distance = rows_kl(place_rows(given, batch.slots, own.shape[1]).to(device), own)
        return {
            TERM.format(kind=kind): example_mean(distance, _is_kind(family, kind))
            for kind in self._kinds
        }

    def _of_example(self, name: str) -> ExampleEvents:
        none = torch.zeros(0, dtype=torch.long)
        return self._examples.get(name, ExampleEvents(none, none, torch.zeros(0, 0)))

    def _families(self, batch: TrainingBatch) -> Tensor:
        """[B, V], -1 in unused slots."""
        return pad_right([self._of_example(name).families.tolist() for name in batch.examples], -1)


def _only(events: ExampleEvents, trained: Tensor) -> ExampleEvents:
    kept = trained[events.families]
    return ExampleEvents(events.queries[kept], events.families[kept], events.rows[kept])


def _is_kind(family: Tensor, kind: str) -> Tensor:
    """bool [B, V]."""
    places = [place for place, (of, _) in enumerate(FAMILIES) if of == kind]
    return torch.isin(family, torch.tensor(places, device=family.device))

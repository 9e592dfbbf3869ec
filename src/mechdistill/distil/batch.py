"""Training sequences and what the teacher did on them, as one padded batch.

Shapes: B sequences, N predicted tokens of the whole batch end to end, E early and R refinement
slots, P mentions, T padded length, k cached tokens of the teacher.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mechdistill.distil.mechanisms import CoarseSignals, RefineSignals, Slots
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.distil.targets import ExampleTargets
from mechdistill.models.batching import Batch, left_pad, pad_right
from mechdistill.traces.parse import RefinePosition


@dataclass(frozen=True)
class TeacherTokens:
    """The cached teacher's distributions at the predicted tokens of a batch."""

    given: Tensor
    """bool [N]: whether one is cached there."""
    kept: Tensor
    """Token ids [N, k]."""
    log_probabilities: Tensor
    """[N, k + 1], the remainder last."""


@dataclass(frozen=True)
class TeacherSignals:
    """The cached teacher's pooled signals at the slots of a batch."""

    coarse: CoarseSignals
    refine: RefineSignals


@dataclass(frozen=True)
class TrainingBatch:
    """One batch of training sequences. Where a tap reads is found only when it is asked for."""

    sequences: tuple[TrainingSequence, ...]
    padded: Batch
    row: Tensor
    """Sequence of each predicted token [N]."""
    position: Tensor
    """Position on the padded axis whose logits predict it [N]."""
    labels: Tensor
    """[N]."""
    weights: Tensor
    """[N]."""
    special_ids: Collection[int]
    """Of the tokenizer; attention on them reads nothing."""

    @property
    def examples(self) -> tuple[str, ...]:
        """Example of each sequence."""
        return tuple(sequence.example for sequence in self.sequences)

    @property
    def tokens(self) -> int:
        """Number of tokens, without padding."""
        return sum(len(sequence.tokens) for sequence in self.sequences)

    @cached_property
    def slots(self) -> Slots:
        """Positions of both phases on the padded axis."""
        refine = [sequence.refine for sequence in self.sequences]
        mentions = [_mentions(positions) for positions in refine]
        shape = (len(refine), max(1, *map(len, refine)), max(1, *map(len, mentions)))
        return Slots(
            early=self.padded.positions([sequence.early for sequence in self.sequences]),
            refine=self.padded.positions([[at.query for at in of] for of in refine]),
            mentions=self.padded.positions(mentions),
            shortlist=_members([[at.shortlist for at in of] for of in refine], mentions, shape),
            near_miss=_members([[at.near_miss for at in of] for of in refine], mentions, shape),
            offset=self.padded.offset,
            length=self.padded.ids.shape[1],
            special=torch.isin(self.padded.ids, torch.tensor(sorted(self.special_ids)))
            & self.padded.mask.bool(),
            groups=_groups(self.sequences, self.padded),
        )

    def key_columns(self) -> list[slice]:
        """The keys of each sequence on the axis of keys that are compared."""
        starts = self.slots.first_columns()
        keys = (max(s.groups) + 1 if s.groups else len(s.tokens) for s in self.sequences)
        return [slice(start, start + count) for start, count in zip(starts, keys)]

    def pair(self) -> tuple[Tensor, Tensor]:
        """Token ids of target and near-miss at each refinement slot: twice [B, R], -1 = unused."""
        refine = [sequence.refine for sequence in self.sequences]
        return (
            pad_right([[at.target for at in of] for of in refine], -1),
            pad_right([[at.foil for at in of] for of in refine], -1),
        )


def collate(
    sequences: Sequence[TrainingSequence], pad_id: int, special_ids: Collection[int]
) -> TrainingBatch:
    """One batch, padded on the left."""
    padded = left_pad([sequence.tokens for sequence in sequences], pad_id)
    starts = padded.offset.tolist()
    rows = [row for row, sequence in enumerate(sequences) for _ in sequence.predicting]
    positions = [start + p for start, s in zip(starts, sequences) for p in s.predicting]
    row, position = torch.tensor(rows), torch.tensor(positions)
    return TrainingBatch(
        sequences=tuple(sequences),
        padded=padded,
        row=row,
        position=position,
        labels=padded.ids[row, position + 1],
        weights=torch.tensor([w for sequence in sequences for w in sequence.weights]),
        special_ids=special_ids,
    )


def collate_tokens(
    sequences: Sequence[TrainingSequence], targets: Mapping[str, ExampleTargets]
) -> TeacherTokens:
    """The teacher's distributions for the batch that `collate` makes of the same sequences."""
    of = [targets[sequence.example] for sequence in sequences]
    wanted = [torch.tensor(sequence.teacher_rows) for sequence in sequences]
    at = [rows.clamp(min=0) for rows in wanted]
    return TeacherTokens(
        given=torch.cat(wanted) >= 0,
        kept=torch.cat([example.kept[rows] for example, rows in zip(of, at)]).long(),
        log_probabilities=torch.cat(
            [example.log_probabilities[rows] for example, rows in zip(of, at)]
        ),
    )


def collate_signals(
    sequences: Sequence[TrainingSequence], targets: Mapping[str, ExampleTargets], slots: Slots
) -> TeacherSignals:
    """The teacher's signals at the slots of the batch that `collate` makes of the sequences."""
    of = [targets[sequence.example] for sequence in sequences]
    return TeacherSignals(
        CoarseSignals(
            rows=place_rows([example.rows for example in of], slots, slots.early.shape[1]),
            alignment=_pad([example.alignment for example in of], slots.early),
            interaction=_pad([example.coarse_interaction for example in of], slots.early),
        ),
        RefineSignals(
            loop=_pad([example.loop for example in of], slots.refine),
            help=_pad([example.help for example in of], slots.refine),
            interaction=_pad([example.refine_interaction for example in of], slots.refine),
        ),
    )


def _mentions(positions: Sequence[RefinePosition]) -> list[int]:
    return sorted({p for at in positions for p in (*at.shortlist, *at.near_miss)})


def _groups(sequences: Sequence[TrainingSequence], padded: Batch) -> Tensor | None:
    """Group of each token on the padded axis [B, T], -1 for those in none; None without groups."""
    if not any(sequence.groups for sequence in sequences):
        return None
    groups = torch.full_like(padded.ids, -1)
    for row, (sequence, start) in enumerate(zip(sequences, padded.offset.tolist())):
        groups[row, start:] = torch.tensor(sequence.groups)
    return groups


def _members(
    sets: Sequence[Sequence[Sequence[int]]],
    mentions: Sequence[Sequence[int]],
    shape: tuple[int, int, int],
) -> Tensor:
    """bool [B, R, P]: whether the mention in slot P belongs to the set of slot R."""
    places = [{position: place for place, position in enumerate(known)} for known in mentions]
    true = [
        (row, slot, places[row][position])
        for row, of_row in enumerate(sets)
        for slot, positions in enumerate(of_row)
        for position in positions
    ]
    members = torch.zeros(shape, dtype=torch.bool)
    if true:
        members[tuple(torch.tensor(true).T)] = True
    return members


def place_rows(rows: Sequence[Tensor], slots: Slots, count: int) -> Tensor:
    """Attention rows [at most `count`, n] of each example on the batch's keys: [B, count, K]."""
    placed = torch.zeros(len(rows), count, slots.columns)
    for row, (values, start) in enumerate(zip(rows, slots.first_columns())):
        placed[row, : len(values), start : start + values.shape[1]] = values
    return placed


def _pad(values: Sequence[Tensor], like: Tensor) -> Tensor:
    """Values of unequal counts as [B, slots], zeros in unused slots."""
    padded = torch.zeros(like.shape)
    for row, of_row in enumerate(values):
        padded[row, : len(of_row)] = of_row
    return padded

"""Patching on the teacher-forced trace: how heads move the margin at decision events.

The clean trace is forced upon both prompts. Heads are patched at the event's query position alone,
one event at a time; everything before it stays as it was, so the position is rerun as a branch over
cached keys (see `mechdistill.models.branches`) and a condition costs one token, however long the
prompt is. Patterns are replaced at all prompt positions too, for a few conditions
(`sweep_prompts`), at the price of a whole forward pass each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mechdistill.models.batching import Batch, left_pad, pad_right
from mechdistill.models.branches import Trunk, branch_rows, grow_trunk, run_branches
from mechdistill.models.margin import decision_margin
from mechdistill.models.tap import Intervention, LayerRecord, Site, Tap
from mechdistill.patching.pairs import DIRECTIONS, SITES, Pair, decision_events, margin_metric
from mechdistill.traces.parse import Event

PROMPT_SITE = "pattern_prompt"
"""Patterns at every prompt position and at the event."""
PAIRS_PER_PASS = 20
"""Pairs whose plain runs are held in memory together."""
SIDE_BY_SIDE = 64
"""Branches in one row: their attention costs them the keys of the trunk and of one another."""


@dataclass(frozen=True)
class EventEffects:
    """Margins in logits at one decision event.

    Args:
        event: its number among the phase's events of the trace.
        metric: the name of its margin, see `margin_metric`.
        clean, corrupted: without patching.
        patched: [sites, directions, conditions], in the order of the sweep's sites and DIRECTIONS.
    """

    example: str
    event: int
    metric: str
    clean: float
    corrupted: float
    patched: NDArray[np.float32]


@torch.inference_mode()
def sweep_margins(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
    sites: Sequence[Site] = SITES,
) -> list[EventEffects]:
    """Margins at every event of the phase under every condition.

    Events whose decision the model does not take on the clean prompt (margin <= 0) are left out:
    there is nothing to restore or to disturb.

    Args:
        masks: heads of each condition [C, L, H].
        branches_per_pass: patched positions that are run together.
        sites: what of a head is replaced; the first axis of the effects.
    """
    sweep = partial(_sweep, sites=sites)
    return _taken_decisions(sweep, model, pairs, phase, masks, pad_id, branches_per_pass)


@dataclass(frozen=True)
class _Side:
    """One run of the pairs, a row an event: its trunk, the heads' rows and mixed values there."""

    trunk: Trunk
    rows: dict[int, Tensor]
    mixed: dict[int, Tensor]

    def part(self, chosen: slice) -> _Side:
        return _Side(
            self.trunk.rows(chosen),
            {layer: rows[chosen] for layer, rows in self.rows.items()},
            {layer: mixed[chosen] for layer, mixed in self.mixed.items()},
        )


@torch.inference_mode()
def sweep_prompts(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
) -> list[EventEffects]:
    """As `sweep_margins`, with patterns replaced at every prompt position as well as at the event.

    What a head reads while the prompt is processed reaches the event through the keys and values of
    all that follows, so a condition cannot branch off the plain run: it costs a whole forward pass
    of each pair and direction, and the donor's rows at all prompt positions are held meanwhile.

    Returns:
        effects whose `patched` is [1, directions, conditions], the site being PROMPT_SITE.
    """
    return _taken_decisions(_sweep_prompts, model, pairs, phase, masks, pad_id, branches_per_pass)


@dataclass(frozen=True)
class _Events:
    """The decision events of some pairs, E in all."""

    pairs: Sequence[Pair]
    queries: list[list[int]]
    """By pair."""
    flat: list[tuple[int, int, Event]]
    """Pair, number among the pair's events, event."""
    targets: Tensor
    """[E]."""
    foils: Tensor
    """[E, most foils], -1 = unused."""

    @classmethod
    def of(cls, pairs: Sequence[Pair], phase: int) -> _Events:
        events = [decision_events(pair.trace, phase) for pair in pairs]
        flat = [(row, slot, e) for row, own in enumerate(events) for slot, e in enumerate(own)]
        return cls(
            pairs,
            [[event.query for event in own] for own in events],
            flat,
            torch.tensor([event.target for _, _, event in flat]),
            pad_right([event.foils for _, _, event in flat], -1),
        )

    def sequences(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """Clean and corrupted tokens of each pair, up to its last event."""
        ends = [max(queries) + 1 for queries in self.queries]
        clean = [pair.trace.tokens[:n] for pair, n in zip(self.pairs, ends)]
        return clean, [pair.corrupted[:n] for pair, n in zip(self.pairs, ends)]

    def effects(self, margins: Tensor) -> list[EventEffects]:
        """From margins [sites, directions, E, 1 + conditions], the unpatched ones first."""
        table = margins.numpy()
        return [
            EventEffects(
                self.pairs[row].example,
                slot,
                margin_metric(event),
                clean=float(table[0, 1, i, 0]),
                corrupted=float(table[0, 0, i, 0]),
                patched=table[:, :, i, 1:],
            )
            for i, (row, slot, event) in enumerate(self.flat)
        ]


def _taken_decisions(
    sweep: Callable[..., list[EventEffects]],
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    pad_id: int,
    branches_per_pass: int,
) -> list[EventEffects]:
    """Sweep the pairs that have an event, some at a time; keep what the clean run decides."""
    held = [pair for pair in pairs if decision_events(pair.trace, phase)]
    effects: list[EventEffects] = []
    for start in range(0, len(held), PAIRS_PER_PASS):
        part = held[start : start + PAIRS_PER_PASS]
        effects += sweep(model, part, phase, masks, pad_id, branches_per_pass)
    return [effect for effect in effects if effect.clean > 0]


def _sweep(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    pad_id: int,
    branches_per_pass: int,
    sites: Sequence[Site],
) -> list[EventEffects]:
    events = _Events.of(pairs, phase)
    (clean, at), (corrupted, _) = (
        _run(model, tokens, events.queries, pad_id) for tokens in events.sequences()
    )
    masks = _with_baseline(masks)
    groups = [masks[i : i + SIDE_BY_SIDE] for i in range(0, len(masks), SIDE_BY_SIDE)]
    per_pass = max(1, branches_per_pass // len(groups[0]))
    margins = torch.empty(len(sites), len(DIRECTIONS), len(at), len(masks))
    for start in range(0, len(at), per_pass):
        part = slice(start, start + per_pass)
        sides = clean.part(part), corrupted.part(part)
        for i, site in enumerate(sites):
            for j, (donor, recipient) in enumerate((sides, sides[::-1])):
                logits = [_patch(model, recipient, donor, at[part], g, site) for g in groups]
                margins[i, j, part] = decision_margin(
                    torch.cat(logits, 1), events.targets[part, None], events.foils[part, None]
                )
    return events.effects(margins)


def _sweep_prompts(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    pad_id: int,
    branches_per_pass: int,
) -> list[EventEffects]:
    events = _Events.of(pairs, phase)
    tokens = events.sequences()
    sides, at = [], torch.empty(0)
    for of in tokens:
        side, at = _run(model, of, events.queries, pad_id)
        sides.append(side)
    batches = [left_pad(of, pad_id) for of in tokens]
    prompts = batches[0].positions([range(pair.trace.prompt_length) for pair in pairs])
    rows = [_rows_at(model, batch, prompts) for batch in batches]
    row_of = torch.tensor([row for row, _, _ in events.flat])

    masks = _with_baseline(masks)
    margins = torch.empty(1, len(DIRECTIONS), len(at), len(masks))
    for j, (donor, recipient) in enumerate(((0, 1), (1, 0))):
        for c, heads in enumerate(masks):
            where = heads.expand(*prompts.shape, -1, -1)
            patch = Intervention("pattern", where, rows[donor])
            tap = Tap(prompts, interventions=(patch,), recording=False)
            trunk = grow_trunk(model, batches[recipient].ids, batches[recipient].mask, tap)
            patched = _Side(trunk.rows(row_of), {}, {})
            for start in range(0, len(at), branches_per_pass):
                part = slice(start, start + branches_per_pass)
                given = sides[donor].part(part)
                logits = _patch(model, patched.part(part), given, at[part], heads[None], "pattern")
                margins[0, j, part, c] = decision_margin(
                    logits, events.targets[part, None], events.foils[part, None]
                )[:, 0]
    return events.effects(margins)


def _with_baseline(masks: Tensor) -> Tensor:
    """Conditions with one more in front, without a head."""
    return torch.cat([masks.new_zeros(1, *masks.shape[1:]), masks])


def _rows_at(model: Any, batch: Batch, positions: Tensor) -> dict[int, Tensor]:
    """Attention rows of a plain run at some positions [B, H, Q, T], by layer."""
    tap = Tap(positions)
    grow_trunk(model, batch.ids, batch.mask, tap)
    return {layer: record.rows for layer, record in tap.record.items()}


def _run(
    model: Any, sequences: Sequence[Sequence[int]], queries: Sequence[Sequence[int]], pad_id: int
) -> tuple[_Side, Tensor]:
    """A plain run, spread to a row an event; and the events' positions [E]."""
    batch = left_pad(sequences, pad_id)
    positions = batch.positions(queries)
    tap = Tap(positions)
    trunk = grow_trunk(model, batch.ids, batch.mask, tap)
    row, slot = (positions >= 0).nonzero(as_tuple=True)

    def spread(name: str) -> dict[int, Tensor]:
        records: dict[int, LayerRecord] = tap.record
        return {i: getattr(record, name)[row, :, slot][:, :, None] for i, record in records.items()}

    return _Side(trunk.rows(row), spread("rows"), spread("mixed")), positions[row, slot]


def _patch(
    model: Any, recipient: _Side, donor: _Side, at: Tensor, masks: Tensor, site: Site
) -> Tensor:
    """Logits [E, C, V] of the recipient's events under each condition's heads of the donor."""
    count = len(masks)
    positions = at[:, None].expand(-1, count)
    if site == "pattern":
        rows = {i: r.expand(-1, -1, count, -1) for i, r in donor.rows.items()}
        values = {i: branch_rows(r, positions) for i, r in rows.items()}
    else:
        values = donor.mixed
    where = masks.expand(len(at), -1, -1, -1)
    patch = Intervention(site, where, values)
    return run_branches(model, recipient.trunk, positions, (patch,)).logits

"""Patching on the teacher-forced trace: how heads move the margin at decision events.

The clean trace is forced upon both prompts. Heads are patched at the event's query position alone,
one event at a time; everything before it stays as it was, so the position is rerun as a branch over
cached keys (see `mechdistill.models.branches`) and a condition costs one token, however long the
prompt is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mechdistill.models.batching import left_pad, pad_right
from mechdistill.models.branches import Trunk, branch_rows, grow_trunk, run_branches
from mechdistill.models.margin import decision_margin
from mechdistill.models.tap import Intervention, LayerRecord, Site, Tap
from mechdistill.patching.pairs import DIRECTIONS, SITES, Pair, decision_events, margin_metric

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
        patched: [sites, directions, conditions], in the order of SITES and DIRECTIONS.
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
) -> list[EventEffects]:
    """Margins at every event of the phase under every condition.

    Events whose decision the model does not take on the clean prompt (margin <= 0) are left out:
    there is nothing to restore or to disturb.

    Args:
        masks: heads of each condition [C, L, H].
        branches_per_pass: patched positions that are run together.
    """
    held = [pair for pair in pairs if decision_events(pair.trace, phase)]
    effects: list[EventEffects] = []
    for start in range(0, len(held), PAIRS_PER_PASS):
        part = held[start : start + PAIRS_PER_PASS]
        effects += _sweep(model, part, phase, masks, pad_id, branches_per_pass)
    return [effect for effect in effects if effect.clean > 0]


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


def _sweep(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    pad_id: int,
    branches_per_pass: int,
) -> list[EventEffects]:
    events = [decision_events(pair.trace, phase) for pair in pairs]
    ends = [max(event.query for event in own) + 1 for own in events]
    flat = [(row, slot, event) for row, own in enumerate(events) for slot, event in enumerate(own)]
    queries = [[event.query for event in own] for own in events]
    targets = torch.tensor([event.target for _, _, event in flat])
    foils = pad_right([event.foils for _, _, event in flat], -1)

    clean, at = _run(model, [p.trace.tokens[:n] for p, n in zip(pairs, ends)], queries, pad_id)
    corrupted, _ = _run(model, [p.corrupted[:n] for p, n in zip(pairs, ends)], queries, pad_id)

    masks = torch.cat(
        [masks.new_zeros(1, *masks.shape[1:]), masks]
    )  # the first: no head, the baseline
    groups = [masks[i : i + SIDE_BY_SIDE] for i in range(0, len(masks), SIDE_BY_SIDE)]
    per_pass = max(1, branches_per_pass // len(groups[0]))
    margins = torch.empty(len(SITES), len(DIRECTIONS), len(flat), len(masks))
    for start in range(0, len(flat), per_pass):
        part = slice(start, start + per_pass)
        sides = clean.part(part), corrupted.part(part)
        for i, site in enumerate(SITES):
            for j, (donor, recipient) in enumerate((sides, sides[::-1])):
                logits = [_patch(model, recipient, donor, at[part], g, site) for g in groups]
                margins[i, j, part] = decision_margin(
                    torch.cat(logits, 1), targets[part, None], foils[part, None]
                )
    table = margins.numpy()
    return [
        EventEffects(
            pairs[row].example,
            slot,
            margin_metric(event),
            clean=float(table[0, 1, i, 0]),
            corrupted=float(table[0, 0, i, 0]),
            patched=table[:, :, i, 1:],
        )
        for i, (row, slot, event) in enumerate(flat)
    ]


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

"""Patching on teacher-forced tokens: how heads move the margin of decisions.

The same tokens are forced upon a clean and a corrupted prompt of equal length. Heads are patched at
the decision's query position alone, one decision at a time; everything before it stays as it was,
so the position is rerun as a branch over cached keys (see `mechdistill.models.branches`) and a
condition costs one token, however long the prompt is; what all prompts begin with is read once, if
it is long. Patterns are replaced at all prompt positions too (`sweep_prompt_patterns`), at the
price of a whole forward pass a condition.

Margins come as one tensor [sites, directions, E, 1 + C]: E decisions in the order of the pairs, C
conditions, the unpatched run before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mechdistill.models.batching import Batch, left_pad, pad_right
from mechdistill.models.branches import Trunk, branch_rows, grow_trunk, run_branches
from mechdistill.models.margin import decision_margin
from mechdistill.models.shared_prefix import SharedPrefix
from mechdistill.models.tap import Intervention, LayerRecord, Site, Tap

SITES: tuple[Site, ...] = ("pattern", "output")
"""The paper's site, and the heads' own output."""
DIRECTIONS = ("denoise", "noise")
"""Clean heads into the corrupted run (sufficient?); corrupted ones into the clean (necessary?)."""

PAIRS_PER_PASS = 20
"""Pairs whose plain runs are held in memory together."""
SIDE_BY_SIDE = 64
"""Branches in one row: their attention costs them the keys of the trunk and of one another."""


class Decision(Protocol):
    """A choice between next tokens: `target` against the best of `foils`, predicted at `query`."""

    @property
    def query(self) -> int:
        """Position in the pair's tokens whose logits decide."""

    @property
    def target(self) -> int:
        """Token id."""

    @property
    def foils(self) -> tuple[int, ...]:
        """Token ids, one at least."""


@dataclass(frozen=True)
class ForcedPair:
    """Tokens on a clean and on a corrupted prompt, and the decisions to read on both.

    Args:
        clean, corrupted: token ids; equal in number, and equal behind the prompt.
        prompt_length: tokens of either prompt.
        decisions: one at least.
    """

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    prompt_length: int
    decisions: Sequence[Decision]


def sweep_decisions(
    model: Any,
    pairs: Sequence[ForcedPair],
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
    sites: Sequence[Site] = SITES,
) -> Tensor:
    """Margins of every decision under every condition, heads patched where it is taken.

    Args:
        pairs: one at least.
        masks: heads of each condition [C, L, H].
        branches_per_pass: patched positions that are run together.
        sites: what of the heads is replaced, one at least.

    Returns:
        [sites, directions, E, 1 + C].
    """
    masks = _with_baseline(masks).to(model.device)
    prompts = [side[: p.prompt_length] for p in pairs for side in (p.clean, p.corrupted)]
    prefix = SharedPrefix.of(model, prompts)
    parts = [
        _sweep(model, forced, masks, branches_per_pass, sites, prefix)
        for forced in _in_passes(pairs, pad_id, model.device)
    ]
    return torch.cat(parts, dim=2)


def sweep_prompt_patterns(
    model: Any,
    pairs: Sequence[ForcedPair],
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
) -> Tensor:
    """As `sweep_decisions`, with patterns replaced at every prompt position and at the decision.

    What a head reads while the prompt is processed reaches the decision through the keys and values
    of all that follows, so a condition cannot branch off the plain run: it costs a whole forward
    pass of each pair and direction; meanwhile the donor's rows at all prompt positions are held.

    Returns:
        [1, directions, E, 1 + C].
    """
    masks = _with_baseline(masks).to(model.device)
    parts = [
        _sweep_prompts(model, forced, masks, branches_per_pass)
        for forced in _in_passes(pairs, pad_id, model.device)
    ]
    return torch.cat(parts, dim=2)


@dataclass(frozen=True)
class _Side:
    """One run of the pairs, a row a decision: its trunk, the heads' rows and mixed values there."""

    trunk: Trunk
    rows: dict[int, Tensor]
    mixed: dict[int, Tensor]

    def part(self, chosen: slice) -> _Side:
        return _Side(
            self.trunk.rows(chosen),
            {layer: rows[chosen] for layer, rows in self.rows.items()},
            {layer: mixed[chosen] for layer, mixed in self.mixed.items()},
        )


@dataclass(frozen=True)
class _Forced:
    """The pairs' tokens up to their last decisions, and the decisions, E in all."""

    batches: tuple[Batch, Batch]
    """Clean and corrupted."""
    prompts: Tensor
    """All positions of each pair's prompt on the padded axis, -1 = unused."""
    positions: Tensor
    """Queries by pair on the padded axis, -1 = unused."""
    row: Tensor
    """Pair of each decision [E]."""
    at: Tensor
    """Query of each decision on the padded axis [E]."""
    targets: Tensor
    """[E]."""
    foils: Tensor
    """[E, most foils], -1 = unused."""

    @classmethod
    def of(cls, pairs: Sequence[ForcedPair], pad_id: int, device: torch.device) -> _Forced:
        queries = [[decision.query for decision in pair.decisions] for pair in pairs]
        ends = [max(own) + 1 for own in queries]
        clean = [pair.clean[:end] for pair, end in zip(pairs, ends)]
        corrupted = [pair.corrupted[:end] for pair, end in zip(pairs, ends)]
        batches = left_pad(clean, pad_id, device), left_pad(corrupted, pad_id, device)
        positions = batches[0].positions(queries)
        row, slot = (positions >= 0).nonzero(as_tuple=True)
        decisions = [decision for pair in pairs for decision in pair.decisions]
        return cls(
            batches,
            batches[0].positions([range(pair.prompt_length) for pair in pairs]),
            positions,
            row,
            positions[row, slot],
            torch.tensor([decision.target for decision in decisions], device=device),
            pad_right([decision.foils for decision in decisions], -1, device),
        )

    def margins(self, logits: Tensor, part: slice) -> Tensor:
        """[decisions of the part, C], of their logits [decisions, C, V]."""
        return decision_margin(logits, self.targets[part, None], self.foils[part, None])


def _in_passes(pairs: Sequence[ForcedPair], pad_id: int, device: torch.device) -> Iterator[_Forced]:
    for start in range(0, len(pairs), PAIRS_PER_PASS):
        yield _Forced.of(pairs[start : start + PAIRS_PER_PASS], pad_id, device)


@torch.inference_mode()
def _sweep(
    model: Any,
    forced: _Forced,
    masks: Tensor,
    branches_per_pass: int,
    sites: Sequence[Site],
    prefix: SharedPrefix | None,
) -> Tensor:
    clean, corrupted = (_run(model, batch, forced.positions, prefix) for batch in forced.batches)
    groups = [masks[i : i + SIDE_BY_SIDE] for i in range(0, len(masks), SIDE_BY_SIDE)]
    per_pass = max(1, branches_per_pass // len(groups[0]))
    margins = torch.empty(len(sites), len(DIRECTIONS), len(forced.at), len(masks), device="cpu")
    for start in range(0, len(forced.at), per_pass):
        part = slice(start, start + per_pass)
        sides = clean.part(part), corrupted.part(part)
        for i, site in enumerate(sites):
            for j, (donor, recipient) in enumerate((sides, sides[::-1])):
                logits = [_patch(model, recipient, donor, forced.at[part], g, site) for g in groups]
                margins[i, j, part] = forced.margins(torch.cat(logits, 1), part)
    return margins


@torch.inference_mode()
def _sweep_prompts(model: Any, forced: _Forced, masks: Tensor, branches_per_pass: int) -> Tensor:
    sides = [_run(model, batch, forced.positions) for batch in forced.batches]
    prompts = forced.prompts
    rows = [_rows_at(model, batch, prompts) for batch in forced.batches]
    margins = torch.empty(1, len(DIRECTIONS), len(forced.at), len(masks), device="cpu")
    for j, (donor, recipient) in enumerate(((0, 1), (1, 0))):
        batch = forced.batches[recipient]
        for c, heads in enumerate(masks):
            where = heads.expand(*prompts.shape, -1, -1)
            patch = Intervention("pattern", where, rows[donor])
            tap = Tap(prompts, interventions=(patch,), recording=False)
            trunk = grow_trunk(model, batch.ids, batch.mask, tap)
            patched = _Side(trunk.rows(forced.row), {}, {})
            for start in range(0, len(forced.at), branches_per_pass):
                part = slice(start, start + branches_per_pass)
                given, at = sides[donor].part(part), forced.at[part]
                logits = _patch(model, patched.part(part), given, at, heads[None], "pattern")
                margins[0, j, part, c] = forced.margins(logits, part)[:, 0]
    return margins


def _with_baseline(masks: Tensor) -> Tensor:
    """Conditions with one more in front, without a head."""
    return torch.cat([masks.new_zeros(1, *masks.shape[1:]), masks])


def _rows_at(model: Any, batch: Batch, positions: Tensor) -> dict[int, Tensor]:
    """Attention rows of a plain run at some positions [B, H, Q, T], by layer."""
    tap = Tap(positions)
    grow_trunk(model, batch.ids, batch.mask, tap)
    return {layer: record.rows for layer, record in tap.record.items()}


def _run(model: Any, batch: Batch, positions: Tensor, prefix: SharedPrefix | None = None) -> _Side:
    """A plain run, spread to a row a decision."""
    tap = Tap(positions)
    trunk = grow_trunk(model, batch.ids, batch.mask, tap, prefix)
    row, slot = (positions >= 0).nonzero(as_tuple=True)

    def spread(name: str) -> dict[int, Tensor]:
        records: dict[int, LayerRecord] = tap.record
        return {i: getattr(record, name)[row, :, slot][:, :, None] for i, record in records.items()}

    return _Side(trunk.rows(row), spread("rows"), spread("mixed"))


def _patch(
    model: Any, recipient: _Side, donor: _Side, at: Tensor, masks: Tensor, site: Site
) -> Tensor:
    """Logits [E, C, V] of the recipient's decisions under each condition's heads of the donor."""
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

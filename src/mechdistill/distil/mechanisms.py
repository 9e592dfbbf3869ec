"""Pooled signals of the two phases, differentiable: what Eqs. 5 and 6 compare between two models.

Teacher (when targets are cached) and student (at every step) go through the same functions.
Nothing of one model's width meets another model: rows over the shared keys and scalars leave here.

Shapes: B sequences, E early and R refinement positions, P mentions whose keys are read, T keys on
the padded axis, K keys of the rows that are compared (T; where the student has another tokenizer,
the groups of tokens that it shares with the teacher, and one for all other tokens), H heads, L
layers, d width of the residual stream. Early and refinement positions are the first E and the last
R slots of one tap, so one forward pass serves both phases.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from mechdistill.heads.coarse import drop_sinks, kurtosis, log_kurtosis
from mechdistill.heads.grouped_rows import group_rows
from mechdistill.heads.pools import Pools
from mechdistill.heads.refine import loop_back
from mechdistill.models.tap import LayerRecord, Tap, pooled_write


@dataclass(frozen=True)
class Slots:
    """Where a batch is read, as positions on its padded key axis; -1 marks an unused slot."""

    early: Tensor
    """[B, E] query positions of phase 1."""
    refine: Tensor
    """[B, R] query positions of phase 2."""
    mentions: Tensor
    """[B, P] positions of shortlist and near-miss mentions."""
    shortlist: Tensor
    """bool [B, R, P]: mentions before the position that the trace finally keeps."""
    near_miss: Tensor
    """bool [B, R, P]: mentions before the position that the trace finally rejects."""
    offset: Tensor
    """[B] padding before the first token of each sequence."""
    length: int
    """T, the padded length."""
    special: Tensor
    """bool [B, T]: special tokens, padding not among them."""
    groups: Tensor | None = None
    """[B, T]: group of each token, -1 for sinks and padding; None: every token is one by itself."""

    @property
    def columns(self) -> int:
        """K."""
        return self.length if self.groups is None else int(self.groups.max()) + 2

    def first_columns(self) -> list[int]:
        """Where on the axis of K keys the first one of each sequence lies."""
        return [0] * len(self.offset) if self.groups is not None else self.offset.tolist()

    def comparable(self, rows: Tensor) -> Tensor:
        """Rows [B, E, T] over the K keys that are compared: [B, E, K]."""
        return rows if self.groups is None else group_rows(rows, self.groups, self.columns - 1)

    def comparable_keys(self, visible: Tensor) -> Tensor:
        """bool [B, E, T] -> [B, E, K]: a group is visible where some token of it is.

        A position that is compared sees all of a group or nothing of it, but at a window's end.
        """
        return visible if self.groups is None else self.comparable(visible.float()) > 0

    def sink_keys(self) -> Tensor:
        """bool [B, 1, K]: the first token of each sequence, and special tokens.

        They collect the attention that heads do not need; a row that rests on them is as sharp as
        a row can be and says nothing about where the model reads. The same keys as
        `mechdistill.heads.places.Places.sinks`. With groups it is the one key of all that have
        none.
        """
        if self.groups is not None:
            last = torch.arange(self.columns, device=self.early.device) == self.columns - 1
            return last.expand(len(self.offset), 1, -1)
        keys = torch.arange(self.length, device=self.early.device)
        return (keys == self.offset[:, None, None]) | self.special[:, None]


@dataclass(frozen=True)
class PooledHeads:
    """Pool weights of a model as dense matrices [L, H]; 0 outside a pool, never trained."""

    coarse: Tensor
    refine: Tensor

    @classmethod
    def of(cls, pools: Pools, layers: int, heads: int) -> PooledHeads:
        """From the pools of a model with that many layers, and heads a layer."""
        coarse, refine = (
            torch.stack([pool.layer_weights(layer, heads) for layer in range(layers)])
            for pool in (pools.phase1, pools.phase2)
        )
        return cls(coarse, refine)

    def only(self, phases: Collection[int]) -> PooledHeads:
        """Without the heads of other phases: layers that only they use are then not read."""
        return PooledHeads(self.coarse * (1 in phases), self.refine * (2 in phases))

    def layers(self) -> frozenset[int]:
        """Layers with a head in either pool."""
        return frozenset((self.coarse + self.refine).any(-1).nonzero().flatten().tolist())

    def tap(self, slots: Slots) -> Tap:
        """The tap that reads what both phases need of one batch, in the pools' layers only."""
        return Tap(
            queries=torch.cat([slots.early, slots.refine], dim=1),
            keys=slots.mentions,
            layers=self.layers(),
        )


@dataclass(frozen=True)
class CoarseSignals:
    """Phase 1 at the early positions."""

    rows: Tensor
    """abar_q without the sinks [B, E, K], adding to one over the keys that remain."""
    alignment: Tensor
    """A(q) [B, E]."""
    interaction: Tensor
    """PCS(q) [B, E], on the scale log10(1 + max(kappa, 0))."""


@dataclass(frozen=True)
class RefineSignals:
    """Phase 2 at the refinement positions."""

    loop: Tensor
    """R(q) [B, R]; 0 where shortlist or near-miss mentions are absent."""
    help: Tensor
    """H(q) [B, R], in standard deviations of the model's margin."""
    interaction: Tensor
    """PRS(q) [B, R]."""


def phase_signals(
    model: nn.Module,
    records: Mapping[int, LayerRecord],
    pools: PooledHeads,
    slots: Slots,
    *,
    anchors: Tensor,
    gradients: Tensor,
    margin_scale: float,
    minimum_keys: int,
) -> tuple[CoarseSignals, RefineSignals]:
    """Both phases of one tapped pass; arguments as in `coarse_signals` and `refine_signals`.

    A phase whose pool is empty comes out as zeros: it has no signal. One pool must have a head.
    """
    early, refine = pooled_writes(model, records, pools, slots.early.shape[1])
    return (
        coarse_signals(records, pools, early, anchors, slots, minimum_keys),
        refine_signals(records, pools, refine, gradients, margin_scale, slots),
    )


def no_signals(slots: Slots) -> tuple[CoarseSignals, RefineSignals]:
    """What a model without any pool has: zeros."""
    early, refine = torch.zeros(slots.early.shape), torch.zeros(slots.refine.shape)
    rows = torch.zeros(*slots.early.shape, slots.columns)
    return CoarseSignals(rows, early, early), RefineSignals(refine, refine, refine)


def pooled_writes(
    model: nn.Module, records: Mapping[int, LayerRecord], pools: PooledHeads, early: int
) -> tuple[Tensor, Tensor]:
    """Dbar(q) of phase 1 at the first `early` slots and of phase 2 at the others.

    One call of the output projection a layer, which serves both phases: its weight may be sharded,
    so it is never sliced.

    Returns:
        [B, E, d] and [B, R, d].
    """
    parts = []
    for layer, record in records.items():
        late = record.mixed.shape[2] - early
        weights = torch.cat(
            [
                pools.coarse[layer][:, None].expand(-1, early),
                pools.refine[layer][:, None].expand(-1, late),
            ],
            dim=1,
        )
        parts.append(pooled_write(model, layer, record.mixed, weights))
    total = torch.stack(parts).sum(0)
    return total[:, :early], total[:, early:]


def coarse_signals(
    records: Mapping[int, LayerRecord],
    pools: PooledHeads,
    writes: Tensor,
    anchors: Tensor,
    slots: Slots,
    minimum_keys: int,
) -> CoarseSignals:
    """abar, A and PCS at the early positions.

    Args:
        records: by layer, slots as `PooledHeads.tap` orders them.
        pools: weights of the heads.
        writes: Dbar(q) [B, E, d].
        anchors: c_anchor(x) in the model's residual space [B, d], detached: otherwise a model
            lowers the loss by turning its read-out towards what it writes.
        slots: where the batch was read.
        minimum_keys: see `mechdistill.heads.coarse.kurtosis`; a row with fewer has a sharpness,
            and so a PCS, of 0.
    """
    rows, visible = pooled_rows(records, pools, slots.early.shape[1])
    rows, visible = slots.comparable(rows), slots.comparable_keys(visible)
    rows, readable = drop_sinks(rows, visible, slots.sink_keys())
    alignment = cosine_similarity(writes, anchors.detach()[:, None], dim=-1)
    sharpness = log_kurtosis(kurtosis(rows, readable, minimum_keys=minimum_keys))
    # too few keys, or an unused slot: NaN must not reach the product's gradient
    sharpness = torch.where(sharpness.isnan(), 0.0, sharpness)
    return CoarseSignals(rows, alignment, sharpness * alignment)


def refine_signals(
    records: Mapping[int, LayerRecord],
    pools: PooledHeads,
    writes: Tensor,
    gradients: Tensor,
    margin_scale: float,
    slots: Slots,
) -> RefineSignals:
    """R, H and PRS at the refinement positions.

    Args:
        records: by layer, slots as `PooledHeads.tap` orders them.
        pools: weights of the heads.
        writes: Dbar(q) [B, R, d].
        gradients: of the margin with respect to h_final(q) [B, R, d], detached.
        margin_scale: standard deviation of the model's margin: the unit of H.
        slots: where the batch was read.
    """
    loop = pooled_loop(records, pools, slots)
    help_ = (writes * gradients.detach()).sum(-1) / margin_scale
    return RefineSignals(loop, help_, loop * help_)


def pooled_rows(
    records: Mapping[int, LayerRecord], pools: PooledHeads, early: int
) -> tuple[Tensor, Tensor]:
    """abar_q = sum_h w_h alpha^h_q at the first `early` slots, sinks included, and its keys.

    Layers may have sliding windows of their own: the keys of a pooled row are those that some head
    of the pool may see.

    Returns:
        [B, E, T] and bool [B, E, T].
    """
    parts, seen = [], []
    for layer, record in records.items():
        heads = pools.coarse[layer].nonzero().flatten()
        weights = pools.coarse[layer][heads]
        parts.append(torch.einsum("bhqk,h->bqk", record.rows[:, heads, :early], weights))
        seen.append(record.visible[:, :early] & bool(len(heads)))
    return torch.stack(parts).sum(0), torch.stack(seen).any(0)


def pooled_loop(records: Mapping[int, LayerRecord], pools: PooledHeads, slots: Slots) -> Tensor:
    """R(q) = sum_h w_h (Sim_short - Sim_near): [B, R], 0 where either set of mentions is empty."""
    early = slots.early.shape[1]
    total = torch.zeros(slots.refine.shape, device=slots.refine.device)
    for layer, record in records.items():
        heads = pools.refine[layer].nonzero().flatten()
        if record.key is None or not len(heads):
            continue
        weights = pools.refine[layer][heads]
        exact = weights.dtype  # also where the model runs in half precision
        similarity = loop_back(
            record.query[:, heads, early:].to(exact),
            record.key[:, heads].to(exact),
            slots.shortlist,
            slots.near_miss,
        )
        total = total + torch.einsum("bhq,h->bq", similarity.nan_to_num(0.0), weights)
    return total

"""One tapped forward pass over a batch of traces, and what the scores need of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from mechdistill.heads.anchors import AnchorSpace, context_anchor, embed_anchors, unembed_anchors
from mechdistill.heads.coarse import attention_mass
from mechdistill.heads.places import Places
from mechdistill.heads.refine import match_on_distance
from mechdistill.models.batching import Batch, left_pad, pad_right
from mechdistill.models.branches import Trunk
from mechdistill.models.families import family_of
from mechdistill.models.margin import final_margin
from mechdistill.models.residuals import reading_residuals
from mechdistill.models.tap import LayerRecord, Tap, head_writes


@dataclass(frozen=True)
class Reading:
    """What a model did in a batch of traces, at the query positions of interest.

    B traces, E early and R refinement slots (the tap's first E and last R), P mention slots, T
    keys of the padded axis, d width of the residual stream.
    """

    model: Any
    places: Sequence[Places]
    batch: Batch
    early: Tensor
    """[B, E] positions on the padded axis, -1 = unused."""
    refine: Tensor
    """[B, R], likewise."""
    mentions: Tensor
    """[B, P], likewise."""
    records: dict[int, LayerRecord]
    context: list[Tensor]
    """Mean residual entering each layer at the anchors' mentions in the prompt [B, d]."""
    h_final: Tensor
    """Residual before the final norm at the refinement slots [B, R, d]."""
    trunk: Trunk | None = None
    """Keys and values of the pass, if they were to be kept."""
    summaries: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Of layers whose rows are gone: what `rows_at_mentions` and `cue_mass` said."""

    @property
    def layers(self) -> list[int]:
        """The model's layers."""
        return sorted(self.records)

    def early_rows(self, layer: int) -> tuple[Tensor, Tensor]:
        """Attention rows [B, H, E, T] and visible keys [B, 1, E, T]."""
        record, count = self.records[layer], self.early.shape[1]
        return record.rows[:, :, :count], record.visible[:, None, :count]

    def refine_rows(self, layer: int) -> Tensor:
        """Attention rows [B, H, R, T]."""
        return self.records[layer].rows[:, :, self.early.shape[1] :]

    def refine_queries(self, layer: int) -> Tensor:
        """Queries [B, H, R, D] after rotary."""
        return widened(self.records[layer].query[:, :, self.early.shape[1] :])

    def at_mentions(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys, and values in the model's own precision, at the mentions [B, H, P, D]."""
        record = self.records[layer]
        if record.key is None or record.value is None:
            raise ValueError("the tap was not asked for keys")
        return widened(record.key), record.value

    def rows_at_mentions(self, layer: int) -> Tensor:
        """Attention on the mentions [B, H, R, P]; unused mention slots hold whatever key 0 gets."""
        if layer in self.summaries:
            return self.summaries[layer][0]
        rows = self.refine_rows(layer)
        at = self.mentions.clamp_min(0)[:, None, None].expand(*rows.shape[:3], -1)
        return rows.gather(3, at)

    def cue_mass(self, layer: int) -> Tensor:
        """Attention on the cue of each refinement slot's clause [B, H, R]; NaN without a cue."""
        if layer in self.summaries:
            return self.summaries[layer][1]
        return attention_mass(self.refine_rows(layer), self.cue_keys)

    def forget_rows(self, layer: int) -> None:
        """Keep of a layer's rows only what `rows_at_mentions` and `cue_mass` say."""
        self.summaries[layer] = self.rows_at_mentions(layer), self.cue_mass(layer)
        record = self.records[layer]
        nothing = record.rows.new_empty(0)
        self.records.update({layer: replace(record, rows=nothing, visible=nothing)})

    def early_writes(self, layer: int) -> Tensor:
        """Delta^h(q) at the early slots [B, H, E, d]."""
        mixed = self.records[layer].mixed[:, :, : self.early.shape[1]]
        return widened(head_writes(self.model, layer, mixed))

    def refine_writes(self, layer: int) -> Tensor:
        """Delta^h(q) at the refinement slots [B, H, R, d]."""
        mixed = self.records[layer].mixed[:, :, self.early.shape[1] :]
        return widened(head_writes(self.model, layer, mixed))

    def sinks(self) -> Tensor:
        """Sink keys, bool [B, 1, 1, T]."""
        return self.keys([places.sinks for places in self.places])[:, None, None]

    def keys(self, positions: Sequence[Sequence[int]]) -> Tensor:
        """One set of positions a trace as keys of the padded axis, bool [B, T]."""
        return _keys(self.batch, positions)

    @cached_property
    def cue_keys(self) -> Tensor:
        """The cue of each refinement slot's clause, bool [B, R, T]."""
        slots = self.refine.shape[1]
        padded = [[*p.cues, *[()] * (slots - len(p.cues))] for p in self.places]
        return torch.stack([self.keys([cues[slot] for cues in padded]) for slot in range(slots)], 1)

    def anchor(self, space: AnchorSpace, layer: int) -> Tensor:
        """c_anchor(x) in the given residual space [B, d]; only `context` depends on the layer."""
        if space == "context":
            return self.context[layer]
        return self._embed_anchors if space == "embed" else self._unembed_anchors

    @cached_property
    def _embed_anchors(self) -> Tensor:
        rows = self.model.get_input_embeddings().weight
        return embed_anchors(rows, [places.anchors for places in self.places])

    @cached_property
    def _unembed_anchors(self) -> Tensor:
        family = family_of(self.model)
        unembedding: Any = family.unembedding(self.model)
        gain, _ = family.final_norm(self.model)
        return unembed_anchors(unembedding.weight, gain, [places.anchors for places in self.places])

    def shortlist(self, *, matched: bool = False) -> tuple[Tensor, Tensor]:
        """Which mentions each refinement slot counts as shortlist and near-miss, bool [B, R, P].

        Args:
            matched: only mentions paired on distance (`match_on_distance`).
        """
        shape = (2, *self.refine.shape, self.mentions.shape[1])
        sets = torch.zeros(shape, dtype=torch.bool, device=self.refine.device)
        for row, places in enumerate(self.places):
            column = {position: p for p, position in enumerate(places.mentions())}
            for slot, at in enumerate(places.refine):
                pair = at.shortlist, at.near_miss
                for which, members in enumerate(match_on_distance(*pair) if matched else pair):
                    sets[which, row, slot, [column[position] for position in members]] = True
        return sets[0], sets[1]

    def pair_ids(self) -> tuple[Tensor, Tensor]:
        """Target and foil of each refinement slot's own clause [B, R, 1], -1 in unused slots."""
        targets = self._ids([[at.target for at in places.refine] for places in self.places])
        foils = self._ids([[at.foil for at in places.refine] for places in self.places])
        return targets[..., None], foils[..., None]

    def label_ids(self) -> tuple[Tensor, Tensor]:
        """All gold labels and all near-misses of the example, for every slot [B, R, k]."""
        slots = self.refine.shape[1]
        gold = self._ids([places.gold for places in self.places])
        near = self._ids([places.near for places in self.places])
        return gold[:, None].expand(-1, slots, -1), near[:, None].expand(-1, slots, -1)

    def _ids(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return pad_right(rows, -1, self.refine.device)

    @torch.no_grad()
    def margins(self) -> Tensor:
        """Margin of the clause's pair at each refinement slot [B, R], in logits."""
        return final_margin(self.model, self.h_final, *self.pair_ids())


def read(
    model: Any,
    places: Sequence[Places],
    *,
    keep_trunk: bool = False,
    at_layer: Callable[[Reading, int], None] | None = None,
) -> Reading:
    """Read a batch of traces in one forward pass, every layer, without gradients.

    Args:
        keep_trunk: keep the pass's keys and values, for gradients through later layers.
        at_layer: looks at each layer's rows while the pass is there, before it has an `h_final`;
            they are forgotten then. All layers' rows are more memory than the pass itself takes.
    """
    batch = left_pad([p.tokens for p in places], _padding(model), model.device)
    early = batch.positions([p.early for p in places])
    refine = batch.positions([[at.query for at in p.refine] for p in places])
    mentions = batch.positions([p.mentions() for p in places])
    anchors = _keys(batch, [p.anchor_mentions for p in places])
    cache = DynamicCache() if keep_trunk else None
    with (
        torch.no_grad(),
        reading_residuals(model, lambda entering: context_anchor(entering, anchors)) as stream,
    ):
        reading = Reading(
            model=model,
            places=places,
            batch=batch,
            early=early,
            refine=refine,
            mentions=mentions,
            records={} if at_layer is None else _ShownRecords(at_layer),
            context=stream.entering,
            h_final=torch.empty(0),
        )
        if isinstance(reading.records, _ShownRecords):
            reading.records.reading = reading
        tap = Tap(torch.cat([early, refine], dim=1), keys=mentions, record=reading.records)
        model.base_model(
            batch.ids, attention_mask=batch.mask, tap=tap, cache=cache, use_cache=keep_trunk
        )
    if isinstance(reading.records, _ShownRecords):
        reading.records.reading = None  # no cycle: memory is free as soon as nobody reads
    at = refine.clamp_min(0)[..., None].expand(-1, -1, stream.final.shape[-1])
    return replace(
        reading,
        h_final=widened(stream.final.gather(1, at)),
        trunk=None if cache is None else Trunk.of(batch.ids, batch.mask, cache),
    )


class _ShownRecords(dict[int, LayerRecord]):
    """Records of a pass: each is shown as soon as it is there, then its rows are forgotten."""

    def __init__(self, at_layer: Callable[[Reading, int], None]) -> None:
        super().__init__()
        self._at_layer = at_layer
        self.reading: Reading | None = None

    def __setitem__(self, layer: int, record: LayerRecord) -> None:
        super().__setitem__(layer, record)
        if self.reading is not None:
            self._at_layer(self.reading, layer)
            self.reading.forget_rows(layer)


def read_all(model: Any, places: Sequence[Places], batch_size: int) -> Iterator[Reading]:
    """Read traces in batches of like length; rows and trunk are kept."""
    for chosen in in_batches(places, batch_size):
        yield read(model, chosen, keep_trunk=True)


def in_batches(places: Sequence[Places], batch_size: int) -> Iterator[list[Places]]:
    """Batches of like length, so that little is padded."""
    order = sorted(range(len(places)), key=lambda index: (len(places[index].tokens), index))
    for start in range(0, len(order), batch_size):
        yield [places[index] for index in order[start : start + batch_size]]


def _keys(batch: Batch, positions: Sequence[Sequence[int]]) -> Tensor:
    at = batch.positions(positions)
    return (at[..., None] == torch.arange(batch.ids.shape[1], device=at.device)).any(1)


def widened(values: Tensor) -> Tensor:
    """In fp32 where the model computes in half precision: scores are sums and small differences."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _padding(model: Any) -> int:
    """Any id will do where a model names none: padding is masked."""
    named = model.config.pad_token_id
    return 0 if named is None else int(named)


def slot_mean(values: Tensor, used: Tensor) -> Tensor:
    """Mean over the used slots that have a value.

    Args:
        values: [B, H, Q]; NaN where a slot has none.
        used: bool [B, Q].

    Returns:
        [B, H]; NaN where no used slot has a value.
    """
    has = used[:, None] & ~values.isnan()
    total = torch.where(has, values, 0.0).sum(-1)
    return (total / has.sum(-1)).masked_fill(~has.any(-1), torch.nan)

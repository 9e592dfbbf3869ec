"""What the heads of each family attend to at its decisions, beside tokens that decide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.heads.event_places import PLACES, PromptPlaces
from mechdistill.heads.overlap import heads_above_null
from mechdistill.models.batching import left_pad
from mechdistill.models.tap import LayerRecord, Tap
from mechdistill.patching.conditions import Head
from mechdistill.patching.event_families import first_events
from mechdistill.patching.null_events import OTHER, matched_tokens, readings
from mechdistill.progress import track
from mechdistill.traces.decision_events import FAMILIES, Family
from mechdistill.traces.parse import Trace

COLUMNS = (
    *("kind", "segment", "null", "place", "layer", "head", "example", "decisions"),
    *("mass", "uniform"),
)


@dataclass(frozen=True)
class Position:
    """A query position, and the event whose places are looked for there."""

    query: int
    region: str
    near_miss: tuple[int, ...] = ()


@dataclass(frozen=True)
class Look:
    """Positions of one trace that are read together: events of a family, or what matches them."""

    family: Family
    null: str
    positions: tuple[Position, ...]


def attend_at_events(
    model: Any,
    traces: Sequence[Trace],
    examples: Iterable[Example],
    events: pd.DataFrame,
    effects: pd.DataFrame,
    space: LabelSpace,
    tokenizer: Any,
    *,
    split: str,
    seed: int,
    batch_size: int,
) -> pd.DataFrame:
    """Attention mass on each place, of the heads that count at a kind of decision.

    A matched token is read with the places of the event that it is matched to; where it comes
    before the near-miss of a departure, it is left out.

    Args:
        effects: of `mechdistill.patching.calibration.calibrate`.
        split: the notes whose decisions are read.
        seed: of the matched tokens.
        batch_size: traces a forward pass.

    Returns:
        kind, segment, null (empty: events; other_token), place (near_miss: departures alone),
        layer, head, example, decisions, mass (mean over the example's decisions; sums to 1 over
        places), uniform (the place's share of the visible keys). No row of a family without a head
        that counts.
    """
    known = {example.example: example for example in examples}
    heads = counting_heads(effects)
    looks = looks_at([trace for trace in traces if trace.split == split], events, list(heads), seed)
    places = {t.example: PromptPlaces.of(known[t.example], space, tokenizer) for t, _ in looks}
    found = list(
        masses(model, looks, places, heads, pad_id=tokenizer.pad_token_id, batch_size=batch_size)
    )
    columns = zip(*found, strict=True) if found else [()] * len(COLUMNS)
    table = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    return table[(table["place"] != "near_miss") | (table["kind"] == "departure")].reset_index(
        drop=True
    )


def counting_heads(effects: pd.DataFrame) -> dict[Family, list[Head]]:
    """Heads that exceed their nulls, by family; no entry without one."""
    by_family = {
        (str(kind), str(segment)): heads_above_null(own)
        for (kind, segment), own in effects.groupby(["kind", "segment"])
    }
    return {family: by_family[family] for family in FAMILIES if by_family.get(family)}


def looks_at(
    traces: Sequence[Trace], events: pd.DataFrame, families: Sequence[Family], seed: int
) -> list[tuple[Trace, list[Look]]]:
    """What is read of each trace; traces without an event of the families are left out."""
    decided = {str(name): list(rows["query"]) for name, rows in events.groupby("example")}
    looks: dict[str, list[Look]] = {trace.example: [] for trace in traces}
    by_name = {trace.example: trace for trace in traces}
    for family in families:
        for example, rows in first_events(events, family).groupby("example"):
            name = str(example)
            if name not in by_name:
                continue
            own = [
                Position(int(query), str(region), tuple(int(p) for p in earlier))
                for query, region, earlier in zip(
                    rows["query"], rows["region"], rows["earlier"], strict=True
                )
            ]
            matched = matched_tokens(by_name[name], family[1], decided[name], readings(rows), seed)
            other = [
                Position(match.query, event.region, event.near_miss)
                for match, event in zip(matched, own, strict=False)
                if all(p <= match.query for p in event.near_miss)
            ]
            looks[name] += [
                Look(family, null, tuple(positions))
                for null, positions in (("", own), (OTHER, other))
                if positions
            ]
    return [(trace, looks[trace.example]) for trace in traces if looks[trace.example]]


@torch.inference_mode()
def masses(
    model: Any,
    looks: Sequence[tuple[Trace, Sequence[Look]]],
    places: Mapping[str, PromptPlaces],
    heads: Mapping[Family, Sequence[Head]],
    *,
    pad_id: int,
    batch_size: int,
) -> Iterator[tuple[Any, ...]]:
    """Rows of `COLUMNS`, each trace read in one pass for all families.

    Args:
        places: by example.
        heads: of each family that is looked at.
    """
    order = sorted(looks, key=lambda look: (len(look[0].tokens), look[0].example))
    layers = frozenset(layer for own in heads.values() for layer, _ in own)
    for start in track(range(0, len(order), batch_size), "batch of notes"):
        chosen = order[start : start + batch_size]
        batch = left_pad([trace.tokens for trace, _ in chosen], pad_id, model.device)
        queries = [sorted({at.query for look in own for at in look.positions}) for _, own in chosen]
        tap = Tap(batch.positions(queries), layers=layers)
        model(batch.ids, attention_mask=batch.mask, tap=tap, logits_to_keep=1)
        for row, (trace, own) in enumerate(chosen):
            first = int(batch.offset[row])
            for look in own:
                member = _membership(places[trace.example], look.positions, len(trace.tokens))
                slots = [queries[row].index(at.query) for at in look.positions]
                for layer, head, mass, uniform in _of_heads(
                    tap.record, heads[look.family], row, slots, first, member.to(model.device)
                ):
                    for place, m, u in zip(PLACES, mass, uniform, strict=True):
                        yield (
                            *(*look.family, look.null, place, layer, head, trace.example),
                            *(len(look.positions), m, u),
                        )


def _of_heads(
    record: Mapping[int, LayerRecord],
    heads: Sequence[Head],
    row: int,
    slots: Sequence[int],
    first: int,
    member: Tensor,
) -> Iterator[tuple[int, int, list[float], list[float]]]:
    """Layer, head, mass on each place and its share of the visible keys, means over positions.

    Args:
        first: where the trace begins on the padded axis.
        member: [positions, tokens, places].
    """
    for layer in sorted({layer for layer, _ in heads}):
        own = [head for at, head in heads if at == layer]
        found = record[layer]
        rows = found.rows[row, own][:, slots, first:]  # [heads, positions, tokens]
        visible = found.visible[row, slots, first:].to(rows.dtype)
        mass = torch.einsum("hpt,ptk->hk", rows, member) / len(slots)
        share = torch.einsum("pt,ptk->pk", visible, member) / visible.sum(-1, keepdim=True)
        for head, values in zip(own, mass.tolist(), strict=True):
            yield layer, head, values, share.mean(0).tolist()


def _membership(places: PromptPlaces, positions: Sequence[Position], length: int) -> Tensor:
    """[positions, length, places], one 1 a key up to the position."""
    member = torch.zeros(len(positions), length, len(PLACES))
    for number, at in enumerate(positions):
        found: np.ndarray = places.at(at.query, at.region, at.near_miss)
        member[number, : len(found)] = functional.one_hot(
            torch.from_numpy(found), len(PLACES)
        ).float()
    return member

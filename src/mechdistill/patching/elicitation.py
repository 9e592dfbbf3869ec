"""Heads ablated some tokens before a region is decided, and how far they read the note.

A head is ablated at one position, d tokens before the event's query; the run goes on over the
trace's own tokens to the event, whose margin is read. Nulls are those of events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch

from mechdistill.models.batching import left_pad
from mechdistill.models.tap import Tap
from mechdistill.patching.head_ablation import COLUMNS as ABLATED
from mechdistill.patching.head_ablation import Options, ablate_heads
from mechdistill.patching.undecided import FAMILY, only_first, with_room
from mechdistill.progress import track
from mechdistill.traces.parse import Trace

ABLATION = ("offset", *(c for c in ABLATED if c not in ("kind", "segment", "attribution")))
ATTENTION = ("offset", "layer", "head", "example", "mass", "uniform")
"""Columns of the two tables."""


def ablate_before_events(
    model: Any,
    traces: Sequence[Trace],
    events: pd.DataFrame,
    found: pd.DataFrame,
    offsets: Sequence[int],
    *,
    split: str,
    reference: str,
    options: Options,
) -> pd.DataFrame:
    """Every head ablated alone, at each offset before the events.

    Args:
        traces: of both splits.
        events: all, columns `mechdistill.patching.undecided.COLUMNS`.
        found: of `mechdistill.patching.undecided.undecided`.
        split, reference, options: see `mechdistill.patching.head_ablation.ablate_heads`.

    Returns:
        columns `ABLATION`; no rows of an offset that no event of either split has room for.
    """
    tables = []
    for offset in track(offsets, "offset"):
        table = ablate_heads(
            model,
            traces,
            only_first(events, with_room(found, offset)),
            split=split,
            reference=reference,
            options=options,
            families=(FAMILY,),
            before=offset,
        )
        if len(table):
            tables.append(table.assign(offset=offset)[list(ABLATION)])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(ABLATION))


@torch.inference_mode()
def note_attention(
    model: Any,
    traces: Sequence[Trace],
    notes: Mapping[str, Sequence[int]],
    found: pd.DataFrame,
    offsets: Sequence[int],
    *,
    pad_id: int,
    batch_size: int,
) -> pd.DataFrame:
    """Attention of every head on the note's tokens, at each offset before the events.

    Args:
        traces: those to read.
        notes: positions of the note's tokens, by example.
        found: of `mechdistill.patching.undecided.undecided`.

    Returns:
        columns `ATTENTION`, means over the example's events: mass on the note, and uniform, the
        note's share of the keys that are visible.
    """
    tables = []
    for offset in offsets:
        rows = with_room(found, offset)
        queries = {
            str(name): sorted(set(own["query"] - offset)) for name, own in rows.groupby("example")
        }
        chosen = [trace for trace in traces if trace.example in queries]
        for start in range(0, len(chosen), batch_size):
            part = chosen[start : start + batch_size]
            tables.append(_note_rows(model, part, notes, queries, pad_id).assign(offset=offset))
    if not tables:
        return pd.DataFrame(columns=list(ATTENTION))
    return pd.concat(tables, ignore_index=True)[list(ATTENTION)]


def _note_rows(
    model: Any,
    traces: Sequence[Trace],
    notes: Mapping[str, Sequence[int]],
    queries: Mapping[str, Sequence[int]],
    pad_id: int,
) -> pd.DataFrame:
    own = [queries[trace.example] for trace in traces]
    batch = left_pad([t.tokens[: q[-1] + 1] for t, q in zip(traces, own)], pad_id, model.device)
    tap = Tap(batch.positions(own))
    model(batch.ids, attention_mask=batch.mask, use_cache=False, logits_to_keep=1, tap=tap)
    places = batch.positions([notes[trace.example] for trace in traces])
    row, slot = (places >= 0).nonzero(as_tuple=True)
    on_note = torch.zeros(batch.ids.shape, device=model.device)
    on_note[row, places[row, slot]] = 1
    records = []
    for layer, record in tap.record.items():
        mass = torch.einsum("bhqk,bk->bhq", record.rows, on_note)
        seen = record.visible.float()
        share = torch.einsum("bqk,bk->bq", seen, on_note) / seen.sum(-1).clamp(min=1)
        for b, trace in enumerate(traces):
            count = len(own[b])
            means = mass[b, :, :count].double().mean(-1).tolist()
            uniform = float(share[b, :count].double().mean())
            records += [
                {
                    **{"layer": layer, "head": head, "example": trace.example},
                    **{"mass": mean, "uniform": uniform},
                }
                for head, mean in enumerate(means)
            ]
    return pd.DataFrame(records)

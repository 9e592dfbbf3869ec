"""Every head ablated alone at the decisions of each kind, beside its nulls: one row an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mechdistill.heads.resampling import Floats
from mechdistill.patching.ablation import ForcedTrace, ablate, attribute, mean_mixed
from mechdistill.patching.conditions import Head, head_masks, heads_of
from mechdistill.patching.event_families import (
    first_events,
    forced_traces,
    traces_with,
)
from mechdistill.patching.null_events import (
    OTHER,
    OWN,
    SHUFFLED,
    Matched,
    Reading,
    matched_tokens,
    read_matched,
    shuffled_events,
)
from mechdistill.progress import track
from mechdistill.traces.decision_events import FAMILIES, Family
from mechdistill.traces.parse import Trace

COLUMNS = (
    *("kind", "segment", "null", "layer", "head", "example", "decisions"),
    *("margin", "effect", "attribution"),
)


@dataclass(frozen=True)
class Options:
    """How to run it: draws of shuffled events, the seed of all draws, padding, sizes of passes."""

    draws: int
    seed: int
    pad_id: int
    batch_size: int
    branches_per_pass: int


@dataclass(frozen=True)
class _Decisions:
    """Traces with events of a family, what is read at these, and at tokens that decide nothing."""

    first: pd.DataFrame
    own: list[tuple[Trace, list[Reading]]]
    matched: list[tuple[Trace, list[Matched]]]

    @classmethod
    def of(
        cls,
        traces: Sequence[Trace],
        events: pd.DataFrame,
        family: Family,
        seed: int,
        before: int,
    ) -> _Decisions:
        names = {trace.example for trace in traces}
        events = events[events["example"].isin(names)]
        decided = {n: list(rows["query"]) for n, rows in events.groupby("example", sort=False)}
        first = first_events(events, family)
        own = traces_with(traces, first)
        matched = [
            (
                trace,
                matched_tokens(
                    trace, family[1], decided[trace.example], readings, seed, before=before
                ),
            )
            for trace, readings in own
        ]
        return cls(first, own, [(trace, places) for trace, places in matched if places])


def ablate_heads(
    model: Any,
    traces: Sequence[Trace],
    events: pd.DataFrame,
    *,
    split: str,
    reference: str,
    options: Options,
    families: Sequence[Family] = FAMILIES,
    before: int = 0,
) -> pd.DataFrame:
    """What every head alone does for decisions of each kind, and for what decides nothing.

    A head's output is replaced by its mean over the reference split's first events of the same kind
    and segment; at other tokens, by its mean over the tokens matched to those.

    Args:
        traces: of both splits.
        events: columns `mechdistill.patching.null_events.EVENTS`.
        split: the notes whose decisions are read.
        reference: the notes whose means take the heads' place.
        families: kinds of decision to look at.
        before: tokens between the ablated position and the decision's own; all events must have so
            many before them. Without attribution, if any.

    Returns:
        kind, segment, null (empty: the events; other_token, shuffled), layer, head, example,
        decisions (their number), margin (plain), effect (plain less ablated, in logits), both means
        over the example's decisions, attribution (first-order estimate of the effect; of events
        alone).
    """
    by_split = {
        name: [trace for trace in traces if trace.split == name] for name in (split, reference)
    }
    tables = []
    for family in track(families, "kind of decision"):
        own, donors = (
            _Decisions.of(by_split[name], events, family, options.seed, before)
            for name in (split, reference)
        )
        if own.own and donors.own:
            tables += list(_family_tables(model, family, own, donors, options, before))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _family_tables(
    model: Any,
    family: Family,
    own: _Decisions,
    donors: _Decisions,
    options: Options,
    before: int,
) -> Iterator[pd.DataFrame]:
    heads = _heads(model)
    names = [trace.example for trace, _ in own.own]
    counts = [len(readings) for _, readings in own.own]
    means = mean_mixed(model, forced_traces(donors.own), pad_id=options.pad_id, before=before)
    estimates = None
    if not before:
        estimate = -attribute(model, forced_traces(own.own), means, pad_id=options.pad_id)
        estimates = _by_trace(estimate.flatten(1), counts)
    shuffled = shuffled_events(own.first, options.draws, options.seed)
    both = [
        (trace, [*readings, *(r for e in readings for r in shuffled[trace.example, e.query])])
        for trace, readings in own.own
    ]
    margins = _ablated(model, forced_traces(both), means, options, before)
    events = [margin[:n] for margin, n in zip(margins, counts, strict=True)]
    yield _rows(family, OWN, names, events, heads, estimates)
    shuffles = [margin[n:] for margin, n in zip(margins, counts, strict=True)]
    yield _rows(family, SHUFFLED, names, shuffles, heads)
    if own.matched and donors.matched:
        others, references = (_read(model, side, options) for side in (own, donors))
        means = mean_mixed(model, references, pad_id=options.pad_id, before=before)
        names = [trace.example for trace, _ in own.matched]
        margins = _ablated(model, others, means, options, before)
        yield _rows(family, OTHER, names, margins, heads)


def _read(model: Any, decisions: _Decisions, options: Options) -> list[ForcedTrace]:
    """The matched tokens, each with its rivals."""
    matched = decisions.matched
    found = read_matched(model, matched, pad_id=options.pad_id, batch_size=options.batch_size)
    traces = (trace for trace, _ in matched)
    return forced_traces(list(zip(traces, found, strict=True)))


def _heads(model: Any) -> list[Head]:
    return heads_of(model.config.num_hidden_layers, model.config.num_attention_heads)


def _ablated(
    model: Any,
    traces: Sequence[ForcedTrace],
    means: Mapping[int, Tensor],
    options: Options,
    before: int,
) -> list[Floats]:
    """Margins [decisions, 1 + heads] of each trace."""
    size = model.config.num_hidden_layers, model.config.num_attention_heads
    margins = ablate(
        model,
        traces,
        means,
        head_masks([frozenset([head]) for head in _heads(model)], *size),
        pad_id=options.pad_id,
        branches_per_pass=options.branches_per_pass,
        before=before,
    )
    return _by_trace(margins, [len(trace.decisions) for trace in traces])


def _by_trace(values: Tensor, counts: Sequence[int]) -> list[Floats]:
    return [part.double().numpy() for part in torch.split(values, list(counts))]


def _rows(
    family: Family,
    null: str,
    names: Sequence[str],
    margins: Sequence[Floats],
    heads: Sequence[Head],
    estimates: Sequence[Floats] | None = None,
) -> pd.DataFrame:
    """Means over the decisions of each trace; traces without one have no row."""
    layers, numbers = zip(*heads, strict=True)
    tables = []
    for i, (name, margin) in enumerate(zip(names, margins, strict=True)):
        if not len(margin):
            continue
        mean = margin.mean(axis=0)
        estimate = np.nan if estimates is None else estimates[i].mean(axis=0)
        tables.append(
            pd.DataFrame(
                {
                    **{"kind": family[0], "segment": family[1], "null": null},
                    **{"layer": layers, "head": numbers, "example": name},
                    **{"decisions": len(margin), "margin": mean[0]},
                    **{"effect": mean[0] - mean[1:], "attribution": estimate},
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))

"""Is a small set of heads necessary and sufficient for decisions of a kind, on notes it never saw?

Heads are ranked on one half of the notes by how far their effect exceeds their nulls. On the other
half, the first of them are ablated together (is what is lost all that heads give?), and all others
are, so that they alone are left (is what they give enough?).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from mechdistill.patching.ablation import ablate, mean_mixed
from mechdistill.patching.conditions import (
    Condition,
    Head,
    conditions,
    distinct_sets,
    head_masks,
    heads_of,
)
from mechdistill.patching.event_families import (
    first_events,
    forced_traces,
    traces_with,
)
from mechdistill.progress import track
from mechdistill.traces.decision_events import FAMILIES, Family
from mechdistill.traces.parse import Trace

MODES = ("ablated", "kept")
"""The set is ablated, or all heads but the set."""
COLUMNS = (
    *("kind", "segment", "mode", "ranking", "bin", "draw", "example", "decisions"),
    *("margin", "floor", "patched"),
)


def halves(examples: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """Notes on which heads are found, and notes on which they are tested, drawn."""
    names = sorted(examples)
    order = np.random.default_rng([seed, 9]).permutation(len(names))
    half = len(names) // 2
    return [names[i] for i in order[:half]], [names[i] for i in order[half:]]


def rank_heads(ablation: pd.DataFrame, examples: Sequence[str], family: Family) -> list[Head]:
    """Heads by mean effect less the larger of their mean nulls on some notes, best first.

    Args:
        ablation: of `mechdistill.patching.head_ablation.ablate_heads`.

    Returns:
        Every head; none where these notes have no such decision.
    """
    kind, segment = family
    rows = ablation[
        (ablation["kind"] == kind)
        & (ablation["segment"] == segment)
        & ablation["example"].isin(set(examples))
    ]
    means = rows.pivot_table(index=["layer", "head"], columns="null", values="effect")
    if "" not in means:
        return []
    excess = means[""] - means.drop(columns="").max(axis=1).fillna(0.0)
    ordered = excess.sort_values(ascending=False, kind="stable")
    return [(int(layer), int(head)) for layer, head in ordered.index]


def ablate_sets(
    model: Any,
    traces: Sequence[Trace],
    events: pd.DataFrame,
    ablation: pd.DataFrame,
    *,
    split: str,
    reference: str,
    bins: Sequence[int],
    draws: int,
    seed: int,
    pad_id: int,
    branches_per_pass: int,
) -> pd.DataFrame:
    """Margins of decisions with the first heads ablated, and with all but them.

    Args:
        traces: of both splits.
        events: columns `mechdistill.patching.null_events.EVENTS`.
        ablation: single heads on the split's notes; those of the first half rank the heads.
        split: the notes whose decisions are read, those of the second half.
        reference: the notes whose means take the heads' place.
        bins, draws, seed: see `mechdistill.patching.conditions.conditions`.

    Returns:
        kind, segment, mode (see MODES), ranking (top and its controls), bin, draw, example,
        decisions (their number), margin (plain), floor (all heads ablated), patched; means over the
        example's decisions.
    """
    size = model.config.num_hidden_layers, model.config.num_attention_heads
    of_split = [trace for trace in traces if trace.split == split]
    found_on, tested_on = halves([trace.example for trace in of_split], seed)
    tested = [trace for trace in of_split if trace.example in set(tested_on)]
    donors = [trace for trace in traces if trace.split == reference]
    tables = []
    for family in track(FAMILIES, "kind of decision"):
        ranked = rank_heads(ablation, found_on, family)
        first = first_events(events, family)
        own, given = traces_with(tested, first), traces_with(donors, first)
        if not (ranked and own and given):
            continue
        means = mean_mixed(model, forced_traces(given), pad_id=pad_id)
        planned = conditions({"top": ranked}, heads_of(*size), bins, draws, seed)
        sets = distinct_sets(planned)
        masks = head_masks([*sets, *_others(sets, size)], *size)
        margins = ablate(
            model,
            forced_traces(own),
            means,
            masks,
            pad_id=pad_id,
            branches_per_pass=branches_per_pass,
        )
        column = {heads: 1 + i for i, heads in enumerate(sets)}
        by_note = torch.split(margins, [len(readings) for _, readings in own])
        for (trace, readings), values in zip(own, by_note, strict=True):
            tables.append(
                _rows(values, planned, column).assign(
                    kind=family[0],
                    segment=family[1],
                    example=trace.example,
                    decisions=len(readings),
                )
            )
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]


def _others(sets: Sequence[frozenset[Head]], size: tuple[int, int]) -> list[frozenset[Head]]:
    every = frozenset(heads_of(*size))
    return [every - heads for heads in sets]


def _rows(
    values: Tensor, planned: Sequence[Condition], column: Mapping[frozenset[Head], int]
) -> pd.DataFrame:
    """Of one note: values [decisions, 1 + sets + their complements], the plain run first."""
    mean = values.double().mean(dim=0).tolist()
    floor = mean[column[planned[-1].heads]]  # all heads
    records = [
        (mode, c.ranking, c.bin, c.draw, mean[0], floor, mean[column[c.heads] + shift])
        for mode, shift in zip(MODES, (0, len(column)), strict=True)
        for c in planned
        if c.ranking != "all"
    ]
    names = ["mode", "ranking", "bin", "draw", "margin", "floor", "patched"]
    return pd.DataFrame(records, columns=names)

"""Does a small set of heads carry a decision into another note's context?

Heads are ranked on one half of the notes, as in `mechdistill.patching.head_sets`; donors and
recipients are notes of the other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd
from torch import Tensor

from mechdistill.data.labels import LabelSpace
from mechdistill.patching.ablation import ForcedTrace, ablate
from mechdistill.patching.conditions import (
    Condition,
    Head,
    conditions,
    distinct_sets,
    head_masks,
    heads_of,
)
from mechdistill.patching.donor_pairs import DonorPair, donor_pairs, first_decisions
from mechdistill.patching.head_sets import halves, rank_heads
from mechdistill.patching.knock_in import Outputs, Recipient, knock_in, outputs_at
from mechdistill.patching.null_events import Reading
from mechdistill.progress import track
from mechdistill.traces.decision_events import FAMILIES, Family
from mechdistill.traces.parse import Trace

SAME_WAY = "same_way"
"""The null: outputs of a note that decides as the recipient does."""
COLUMNS = (
    *("kind", "segment", "null", "ranking", "bin", "draw", "example", "donor"),
    *("start", "end", "donor_margin", "patched", "carried", "carried_all"),
)
PAIRS = ("kind", "segment", "notes", "recipients", "pairs", "recipients_with_null")
"""Columns of the two tables."""


def knock_in_sets(
    model: Any,
    traces: Sequence[Trace],
    events: pd.DataFrame,
    ablation: pd.DataFrame,
    space: LabelSpace,
    *,
    split: str,
    bins: Sequence[int],
    draws: int,
    donors: int,
    seed: int,
    pad_id: int,
    branches_per_pass: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Margins between a donor's and a recipient's token with the donor's heads in place.

    Args:
        traces: of the split, at least.
        events: columns `mechdistill.patching.donor_pairs.EVENTS`.
        ablation: single heads on the split's notes; those of the first half rank the heads.
        split: the notes that are paired, those of the second half.
        bins, draws, seed: see `mechdistill.patching.conditions.conditions`.
        donors: drawn for each recipient.

    Returns:
        Pairs: kind, segment, null (empty: outputs of the donor; same_way: of a note that decides as
        the recipient), ranking, bin, draw, example (the recipient), donor, start (logit of the
        donor's token less the recipient's, plain run), end (with all heads of the donor in place),
        donor_margin (the same two tokens at the donor's own event), patched (with the set in
        place), carried and carried_all (the donor's token is then the first of all that the
        recipient could take).
        Counts, one row a family: kind, segment, notes (of that half that decide so), recipients
        (with a donor), pairs, recipients_with_null.
    """
    by_name = {trace.example: trace for trace in traces if trace.split == split}
    found_on, tested_on = halves(list(by_name), seed)
    every = heads_of(model.config.num_hidden_layers, model.config.num_attention_heads)
    tables, counts = [], []
    for family in track(FAMILIES, "kind of decision"):
        decisions = first_decisions(events, family, tested_on, space)
        pairs = donor_pairs(decisions, family, draws=donors, seed=seed)
        recipients = {pair.recipient.example for pair in pairs}
        nulled = {pair.recipient.example for pair in pairs if pair.alike}
        counts.append((*family, len(decisions), len(recipients), len(pairs), len(nulled)))
        ranked = rank_heads(ablation, found_on, family)
        if ranked and pairs:
            planned = conditions({"top": ranked}, every, bins, draws, seed)
            sizes = {"pad_id": pad_id, "branches_per_pass": branches_per_pass}
            tables.append(_family_rows(model, by_name, family, pairs, planned, sizes))
    rows = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))
    return rows[list(COLUMNS)], pd.DataFrame(counts, columns=list(PAIRS))


def _family_rows(
    model: Any,
    traces: Mapping[str, Trace],
    family: Family,
    pairs: Sequence[DonorPair],
    planned: Sequence[Condition],
    sizes: Mapping[str, int],
) -> pd.DataFrame:
    sets = distinct_sets(planned)
    column = {heads: 1 + i for i, heads in enumerate(sets)}
    masks = _masks(model, sets)
    sources = {
        first.example: first for pair in pairs for first in (pair.donor, pair.alike) if first
    }
    given = [ForcedTrace(traces[name].tokens, [own.reading]) for name, own in sources.items()]
    outputs = dict(zip(sources, outputs_at(model, given, pad_id=sizes["pad_id"]), strict=True))
    own_margins = ablate(
        model,
        [
            ForcedTrace(
                traces[pair.donor.example].tokens, [_of_pair(pair, pair.donor.reading.query)]
            )
            for pair in pairs
        ],
        {},
        masks[:0],
        **sizes,
    )[:, 0].tolist()
    by_recipient = [list(own) for _, own in groupby(pairs, key=lambda pair: pair.recipient)]
    margins = knock_in(
        model, [_recipient(traces, own, outputs) for own in by_recipient], masks, **sizes
    )
    records: list[tuple[object, ...]] = []
    donor_margins = iter(own_margins)
    for own, values in zip(by_recipient, margins, strict=True):
        turn = 0
        for i, pair in enumerate(own):
            names = pair.recipient.example, pair.donor.example
            known = next(donor_margins)
            carried_over = values[turn, 2 * i : 2 * i + 2]
            records += _records("", names, known, carried_over, carried_over, planned, column)
            turn += 1
            if pair.alike:
                null = values[turn, 2 * i : 2 * i + 2]
                records += _records(SAME_WAY, names, known, null, carried_over, planned, column)
                turn += 1
    frame = pd.DataFrame(records, columns=[c for c in COLUMNS if c not in ("kind", "segment")])
    return frame.assign(kind=family[0], segment=family[1])


def _masks(model: Any, sets: Sequence[frozenset[Head]]) -> Tensor:
    return head_masks(sets, model.config.num_hidden_layers, model.config.num_attention_heads)


def _of_pair(pair: DonorPair, query: int) -> Reading:
    return Reading(query, pair.donor.reading.target, (pair.recipient.reading.target,))


def _recipient(
    traces: Mapping[str, Trace], pairs: Sequence[DonorPair], outputs: Mapping[str, Outputs]
) -> Recipient:
    """Donors in turn, each followed by its null; two margins a pair: of its tokens, of all."""
    own = pairs[0].recipient.reading
    decisions = []
    for pair in pairs:
        token = pair.donor.reading.target
        others = tuple(foil for foil in (own.target, *own.foils) if foil != token)
        decisions += [_of_pair(pair, own.query), Reading(own.query, token, others)]
    given = [first for pair in pairs for first in (pair.donor, pair.alike) if first]
    trace = ForcedTrace(traces[pairs[0].recipient.example].tokens, decisions)
    return Recipient(trace, [outputs[first.example] for first in given])


def _records(
    null: str,
    names: tuple[str, str],
    donor_margin: float,
    margins: Tensor,
    whole: Tensor,
    planned: Sequence[Condition],
    column: Mapping[frozenset[Head], int],
) -> list[tuple[object, ...]]:
    """Of one pair: margins [2, 1 + sets] of its two tokens, and of the donor's against all others.

    Args:
        whole: the same under the donor, which give the full distance.
    """
    every = column[planned[-1].heads]  # all heads
    distance = float(whole[0, 0]), float(whole[0, every])
    return [
        (
            *(null, c.ranking, c.bin, c.draw, *names, *distance, donor_margin),
            float(margins[0, column[c.heads]]),
            bool(margins[1, column[c.heads]] > 0),
            bool(whole[1, every] > 0),
        )
        for c in planned
        if c.ranking != "all"
    ]

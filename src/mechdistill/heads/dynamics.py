"""How the heads' looking back and writing changes over the reasoning (Figure 7, right)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.heads.places import Places, all_places
from mechdistill.heads.reading import Reading, read_all, slot_mean
from mechdistill.heads.refine import helpfulness_cosine, mean_cosine
from mechdistill.heads.tables import head_rows
from mechdistill.models.margin import margin_gradient
from mechdistill.traces.parse import RefinePosition, Trace

STAGES = {
    "1-10": (1, 10),
    "11-20": (11, 20),
    "21-35": (21, 35),
    "36-50": (36, 50),
    "51+": (51, None),
}
"""Numbers of the reasoning tokens of each stage, from 1, both ends included."""


def head_dynamics(
    model: Any,
    traces: Sequence[Trace],
    examples: Iterable[Example],
    space: LabelSpace,
    tokenizer: Any,
    *,
    name: str,
    batch_size: int,
) -> pd.DataFrame:
    """Three quantities of every head at every stage of the reasoning, example by example.

    `similarity_shortlist` and `similarity_near_miss`: mean cosine of the head's query with the keys
    of earlier mentions that the trace finally keeps or rejects, over the positions at which both
    exist. `help_cosine`: cosine of the head's write with the gradient at h_final of the margin of
    all gold labels against all near-misses (Eq. 7), over all positions.

    Args:
        model: attached to the tap, in evaluation mode.
        traces: with tokens of `tokenizer`.
        examples: at least those that the traces belong to.
        space: the label space.
        tokenizer: of the model.
        name: written into the column `model`.
        batch_size: traces a forward pass.

    Returns:
        model, phase (2), layer, head, example, stage, quantity, value; no row where a stage has no
        position with a value: nothing is drawn as zero.
    """
    places = [
        at_every_token(place, trace)
        for place, trace in zip(all_places(traces, examples, space, tokenizer), traces, strict=True)
    ]
    tables = [
        head_rows(
            values,
            [p.example for p in reading.places],
            model=name,
            phase=2,
            stage=stage,
            quantity=quantity,
        )
        for reading in read_all(model, [p for p in places if p.refine], batch_size)
        for stage, quantity, values in _by_stage(reading)
    ]
    frame = pd.concat(tables, ignore_index=True)
    columns = ["model", "phase", "layer", "head", "example", "stage", "quantity", "value"]
    order = ["quantity", "layer", "head", "example", "stage"]
    return frame[columns].sort_values(order, ignore_index=True)


def at_every_token(places: Places, trace: Trace) -> Places:
    """The same places with a refinement position before every token of the reasoning.

    Its sets are all earlier label mentions by their final verdict; it has no pair of its own.
    """
    labels = [m for m in trace.mentions if m.kind == "label" and m.segment != "answer"]
    everywhere = tuple(
        RefinePosition(
            query=query,
            target=-1,
            foil=-1,
            clause=-1,
            shortlist=_earlier(labels, "kept", query),
            near_miss=_earlier(labels, "rejected", query),
        )
        for query in range(trace.prompt_length - 1, trace.reasoning_end - 1)
    )
    return replace(places, refine=everywhere, cues=((),) * len(everywhere))


@torch.no_grad()
def _by_stage(reading: Reading) -> Iterator[tuple[str, str, Tensor]]:
    """Stage, quantity and its values [B, L, H]."""
    shortlist, near_miss = reading.shortlist()
    both = (shortlist.any(-1) & near_miss.any(-1))[:, None]
    gradient = margin_gradient(reading.model, reading.h_final, *reading.label_ids())
    layers: dict[str, list[Tensor]] = {}
    for layer in reading.layers:
        query, (key, _) = reading.refine_queries(layer), reading.at_mentions(layer)
        for quantity, members in (
            ("similarity_shortlist", shortlist),
            ("similarity_near_miss", near_miss),
        ):
            similarity = mean_cosine(query, key, members).masked_fill(~both, torch.nan)
            layers.setdefault(quantity, []).append(similarity)
        writes = reading.refine_writes(layer)
        layers.setdefault("help_cosine", []).append(helpfulness_cosine(writes, gradient))
    starts = torch.tensor([places.prompt_length for places in reading.places])
    # token number 1 of the reasoning is predicted at the prompt's last position
    number = reading.refine - reading.batch.offset[:, None] - starts[:, None] + 2
    for stage, (first, last) in STAGES.items():
        used = (reading.refine >= 0) & (number >= first)
        if last is not None:
            used &= number <= last
        for quantity, values in layers.items():
            yield stage, quantity, torch.stack([slot_mean(v, used) for v in values], dim=1)


def _earlier(labels: Iterable[Any], verdict: str, query: int) -> tuple[int, ...]:
    return tuple(
        position
        for mention in labels
        if mention.verdict == verdict
        for position in range(mention.start, mention.end)
        if position < query
    )

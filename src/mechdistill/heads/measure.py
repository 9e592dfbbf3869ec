"""Every score variant of every head of a model, example by example."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.errors import InputError
from mechdistill.heads.early_scores import EarlyScores
from mechdistill.heads.places import Places, all_places
from mechdistill.heads.reading import Reading, in_batches, read
from mechdistill.heads.refinement_scores import RefinementScores
from mechdistill.heads.tables import head_rows
from mechdistill.traces.parse import Trace

_Named = tuple[int, str, str, str]
"""Phase, score, anchor space, sinks."""


@dataclass(frozen=True)
class Measured:
    """What `measure_heads` found.

    Args:
        values: model, phase, score, anchor, sinks, layer, head, example, value: the mean over the
            example's positions; no row where no position has a value. Scores are named in
            `EarlyScores` (phase 1) and `RefinementScores` (phase 2).
        margins: model, example, query, margin: the model's margin of the clause's pair at each
            refinement position, in logits.
    """

    values: pd.DataFrame
    margins: pd.DataFrame


def measure_heads(
    model: Any,
    traces: Sequence[Trace],
    examples: Iterable[Example],
    space: LabelSpace,
    tokenizer: Any,
    *,
    name: str,
    minimum_keys: int,
    batch_size: int,
) -> Measured:
    """Measure all heads of a model on traces, which need not be its own.

    Args:
        model: attached to the tap, in evaluation mode.
        traces: with tokens of `tokenizer`.
        examples: at least those that the traces belong to.
        space: the label space.
        tokenizer: of the model.
        name: written into the column `model`.
        minimum_keys: see `mechdistill.heads.coarse.kurtosis`.
        batch_size: traces a forward pass.
    """
    places = all_places(traces, examples, space, tokenizer)
    return measure_places(
        model, places, name=name, minimum_keys=minimum_keys, batch_size=batch_size
    )


def measure_places(
    model: Any,
    places: Sequence[Places],
    *,
    name: str,
    minimum_keys: int,
    batch_size: int,
    phases: Collection[int] = (1, 2),
) -> Measured:
    """Measure all heads of a model at places that are known, of whatever texts.

    Args:
        phases: whose scores to compute; phase 1 needs an anchor in every place.
        model, name, minimum_keys, batch_size: see `measure_heads`.
    """
    found: dict[_Named, list[Tensor]] = {}
    order: list[str] = []
    margins: list[pd.DataFrame] = []
    for chosen in in_batches(places, batch_size):
        order += [place.example for place in chosen]
        reading, variants = score_variants(model, chosen, minimum_keys, phases)
        margins.append(_margins(reading))
        for key, values in variants.items():
            found.setdefault(key, []).append(values)
    tables = [
        head_rows(
            torch.cat(parts),
            order,
            model=name,
            phase=phase,
            score=score,
            anchor=anchor,
            sinks=sinks,
        )
        for (phase, score, anchor, sinks), parts in sorted(found.items())
    ]
    margin_table = pd.concat(margins).sort_values(["example", "query"], ignore_index=True)
    margin_table.insert(0, "model", name)
    return Measured(pd.concat(tables, ignore_index=True), margin_table)


def margin_deviation(margins: pd.DataFrame) -> float:
    """Standard deviation of a model's margin over all refinement positions, in logits.

    Raises:
        InputError: there are fewer than two positions, or all margins are equal.
    """
    deviation = float(margins["margin"].std(ddof=0)) if len(margins) > 1 else 0.0
    if not deviation > 0:
        raise InputError(
            f"the margin has no scale: the ranking traces hold {len(margins)} refinement "
            "positions, all with the same margin",
            "raise data.splits.ranking, or train longer if the traces weigh no candidates",
        )
    return deviation


@torch.no_grad()
def score_variants(
    model: Any, places: Sequence[Places], minimum_keys: int, phases: Collection[int] = (1, 2)
) -> tuple[Reading, dict[_Named, Tensor]]:
    """What was read of a batch, and each variant's values [B, L, H].

    Phase 1 is scored while the pass is at a layer, phase 2, which asks for the end of the pass,
    after it; so no more than one layer's attention rows are in memory.
    """
    by_layer: dict[_Named, list[Tensor]] = {}
    early: list[EarlyScores] = []

    def add(phase: int, scores: EarlyScores | RefinementScores, layer: int) -> None:
        for score, anchor, sinks, values in scores.of_layer(layer):
            by_layer.setdefault((phase, score, anchor, sinks), []).append(values)

    def at_layer(reading: Reading, layer: int) -> None:
        if 1 in phases:
            early[:] = early or [EarlyScores(reading, minimum_keys)]
            add(1, early[0], layer)

    reading = read(model, places, keep_trunk=True, at_layer=at_layer)
    if 2 in phases:
        late = RefinementScores(reading)
        for layer in reading.layers:
            add(2, late, layer)
    return reading, {key: torch.stack(layers, dim=1) for key, layers in by_layer.items()}


def _margins(reading: Reading) -> pd.DataFrame:
    values = reading.margins()
    return pd.DataFrame(
        [
            (places.example, at.query, float(values[row, slot]))
            for row, places in enumerate(reading.places)
            for slot, at in enumerate(places.refine)
        ],
        columns=["example", "query", "margin"],
    )

"""Patching while the model writes, from pairs to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mechdistill.patching.conditions import Condition, distinct_sets, head_masks
from mechdistill.patching.generated_scores import Score, generated_table
from mechdistill.patching.generated_sweep import Parse, record_sides, sweep_generated
from mechdistill.patching.pairs import Pair
from mechdistill.progress import track


@dataclass(frozen=True)
class Reading:
    """How the patched runs of a phase are written and read.

    Args:
        max_new_tokens: most tokens of a patched run; its window ends there.
        stop_ids: tokens behind which nothing of the window follows.
        scores: by name of the metric.
    """

    max_new_tokens: int
    stop_ids: frozenset[int]
    scores: Mapping[str, Score]


def patch_generated(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    conditions: Sequence[Condition],
    reading: Reading,
    parse: Parse,
    *,
    max_new_tokens: int,
    eos_id: int,
    pad_id: int,
    batch_size: int,
) -> pd.DataFrame:
    """Every condition on every pair, both sites and directions; columns of `generated_table`.

    Args:
        pairs: all of one twin.
        max_new_tokens: most tokens of the unpatched runs.
        batch_size: patched runs written together.
    """
    sets = distinct_sets(conditions)
    masks = head_masks(sets, model.config.num_hidden_layers, model.config.num_attention_heads)
    sides = record_sides(
        model, pairs, parse, max_new_tokens=max_new_tokens, eos_id=eos_id, pad_id=pad_id
    )
    runs = {
        pair.example: list(
            sweep_generated(
                model,
                *sides[pair.example],
                phase,
                masks,
                max_new_tokens=reading.max_new_tokens,
                stop_ids=reading.stop_ids,
                batch_size=batch_size,
            )
        )
        for pair in track(pairs, f"patched note, phase {phase} on {pairs[0].twin}")
    }
    return generated_table(
        runs, sides, conditions, sets, phase, pairs[0].twin, reading.scores, parse
    )

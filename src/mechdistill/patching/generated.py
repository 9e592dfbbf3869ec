"""Patching while the model writes, from pairs to a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mechdistill.data.twins import Twin
from mechdistill.patching.conditions import (
    Condition,
    distinct_sets,
    head_masks,
    without_controls,
)
from mechdistill.patching.generated_scores import generated_table
from mechdistill.patching.generated_sweep import record_sides, sweep_generated
from mechdistill.patching.pairs import DESIGN, SHAM, Pair, make_pairs
from mechdistill.patching.reader import Reader
from mechdistill.progress import track
from mechdistill.traces.parse import Trace


def patch_design(
    model: Any,
    traces: Sequence[Trace],
    twins: Mapping[tuple[str, str], Twin],
    planned: Mapping[int, Sequence[Condition]],
    reader: Reader,
    *,
    max_new_tokens: int,
    batch_size: int,
) -> pd.DataFrame:
    """Every twin and phase of the design; see `patch_generated`.

    Args:
        traces: the notes that can be patched.
        twins: by example and kind.
        planned: conditions by phase; on the sham twin the rankings are patched without controls.
    """
    tables = [
        patch_generated(
            model,
            make_pairs(traces, twins, twin, reader.tokenizer),
            phase,
            without_controls(planned[phase]) if twin == SHAM else planned[phase],
            reader,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
        )
        for twin, phase in DESIGN
    ]
    return pd.concat(tables, ignore_index=True)


def patch_generated(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    conditions: Sequence[Condition],
    reader: Reader,
    *,
    max_new_tokens: int,
    batch_size: int,
) -> pd.DataFrame:
    """Every condition on every pair, both sites and directions; columns of `generated_table`.

    Args:
        pairs: all of one twin.
        max_new_tokens: most tokens of a run; a patched one of phase 1 ends with the early window.
        batch_size: patched runs written together.
    """
    sets = distinct_sets(conditions)
    masks = head_masks(sets, model.config.num_hidden_layers, model.config.num_attention_heads)
    sides = record_sides(
        model,
        pairs,
        reader.parse,
        max_new_tokens=max_new_tokens,
        eos_id=reader.tokenizer.eos_token_id,
        pad_id=reader.tokenizer.pad_token_id,
    )
    runs = {
        pair.example: list(
            sweep_generated(
                model,
                *sides[pair.example],
                phase,
                masks,
                max_new_tokens=reader.early_tokens if phase == 1 else max_new_tokens,
                stop_ids=reader.stops(phase),
                batch_size=batch_size,
            )
        )
        for pair in track(pairs, f"patched note, phase {phase} on {pairs[0].twin}")
    }
    return generated_table(
        runs, sides, conditions, sets, phase, pairs[0].twin, reader.scores(phase), reader.parse
    )

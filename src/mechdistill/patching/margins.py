"""Patching read by the teacher-forced margin: all twins, phases, sites and conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.data.twins import Twin
from mechdistill.patching.conditions import (
    Condition,
    distinct_sets,
    head_masks,
    without_controls,
)
from mechdistill.patching.effects import margin_table
from mechdistill.patching.margin_sweep import PROMPT_SITE, sweep_margins, sweep_prompts
from mechdistill.patching.pairs import DESIGN, SHAM, Pair, make_pairs
from mechdistill.progress import track
from mechdistill.traces.parse import Trace


def patch_margins(
    model: Any,
    traces: Sequence[Trace],
    twins: Mapping[tuple[str, str], Twin],
    planned: Mapping[int, Sequence[Condition]],
    tokenizer: PreTrainedTokenizerFast,
    *,
    branches_per_pass: int,
) -> pd.DataFrame:
    """One row a condition, site, direction, example and metric; columns of `margin_table`.

    Where the corruption fits the phase, controls are patched too, and the heads of the other phase
    on the same events. On the sham twin the rankings are patched alone. At the site
    `mechdistill.patching.margin_sweep.PROMPT_SITE`, which is dear, the printed ranking and all
    heads.

    Args:
        traces: the notes that can be patched.
        twins: by example and kind.
        planned: conditions by phase.
        branches_per_pass: see `mechdistill.patching.margin_sweep.sweep_margins`.
    """
    size = model.config.num_hidden_layers, model.config.num_attention_heads
    options = {"pad_id": tokenizer.pad_token_id, "branches_per_pass": branches_per_pass}
    tables = []
    for twin, phase in track(DESIGN, "twin and phase"):
        pairs = make_pairs(traces, twins, twin, tokenizer)
        fits = twin != SHAM
        own = planned[phase] if fits else without_controls(planned[phase])
        other = without_controls(planned[3 - phase]) if fits else []
        sets = distinct_sets([*own, *other])
        effects = sweep_margins(model, pairs, phase, head_masks(sets, *size), **options)
        tables.append(margin_table(effects, own, sets, phase, twin))
        if fits:
            tables.append(margin_table(effects, other, sets, 3 - phase, twin))
            tables.append(_at_prompts(model, pairs, phase, own, size, options))
    return pd.concat(tables, ignore_index=True)


def _at_prompts(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    planned: Sequence[Condition],
    size: tuple[int, int],
    options: Mapping[str, int],
) -> pd.DataFrame:
    chosen = [condition for condition in planned if condition.ranking in ("top", "all")]
    sets = distinct_sets(chosen)
    effects = sweep_prompts(model, pairs, phase, head_masks(sets, *size), **options)
    return margin_table(effects, chosen, sets, phase, pairs[0].twin, (PROMPT_SITE,))

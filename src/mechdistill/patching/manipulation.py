"""Do the twins do what they are made for? The gap that patching is to close, unpatched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mechdistill.data.twins import Twin
from mechdistill.models.generate import greedy
from mechdistill.patching.conditions import head_masks
from mechdistill.patching.margin_sweep import EventEffects, sweep_margins
from mechdistill.patching.pairs import DESIGN, make_pairs
from mechdistill.patching.reader import Reader
from mechdistill.traces.parse import Trace

COLUMNS = ["phase", "twin", "example", "metric", "clean", "corrupted"]


def check_twins(
    model: Any,
    traces: Sequence[Trace],
    twins: Mapping[tuple[str, str], Twin],
    reader: Reader,
    *,
    max_new_tokens: int,
    batch_size: int,
    branches_per_pass: int,
) -> pd.DataFrame:
    """What each twin of the design does to margins and to what the model writes; columns COLUMNS.

    Args:
        traces: the model's own on the clean prompts.
        twins: by example and kind.
        max_new_tokens, batch_size: of the traces written on the twins.
        branches_per_pass: see `mechdistill.patching.margin_sweep.sweep_margins`.
    """
    nothing = head_masks([], model.config.num_hidden_layers, model.config.num_attention_heads)
    pad_id = reader.tokenizer.pad_token_id
    clean = {trace.example: trace for trace in traces}
    tables = []
    for twin in dict.fromkeys(twin for twin, _ in DESIGN):
        pairs = make_pairs(traces, twins, twin, reader.tokenizer)
        runs = greedy(
            model,
            [pair.corrupted_prompt for pair in pairs],
            max_new_tokens=max_new_tokens,
            eos_id=reader.tokenizer.eos_token_id,
            pad_id=pad_id,
            batch_size=batch_size,
            what=f"trace of {twin}",
        )
        written = [reader.parse(p.example, ids) for p, ids in zip(pairs, runs, strict=True)]
        for phase in (phase for name, phase in DESIGN if name == twin):
            effects = sweep_margins(
                model, pairs, phase, nothing, pad_id=pad_id, branches_per_pass=branches_per_pass
            )
            tables.append(margin_gaps(effects, phase, twin))
            before = [clean[trace.example] for trace in written]
            for metric, score in reader.scores(phase).items():
                # where a corrupted trace has no refinement position, the clean one's are read
                first, second = (
                    {trace.example: value for trace, value in zip(of, score(of, before).tolist())}
                    for of in (before, written)
                )
                tables.append(written_gaps(first, second, phase, twin, metric))
    return pd.concat(tables, ignore_index=True)


def margin_gaps(effects: Sequence[EventEffects], phase: int, twin: str) -> pd.DataFrame:
    """Mean margins over each example's events, clean and corrupted; columns as COLUMNS."""
    events = pd.DataFrame(
        [(phase, twin, e.example, e.metric, e.clean, e.corrupted) for e in effects],
        columns=COLUMNS,
    )
    return events.groupby(COLUMNS[:4], sort=False).mean().reset_index()


def written_gaps(
    clean: Mapping[str, float], corrupted: Mapping[str, float], phase: int, twin: str, metric: str
) -> pd.DataFrame:
    """A metric of the written traces, by example id; columns as COLUMNS."""
    rows = [(phase, twin, name, metric, clean[name], corrupted[name]) for name in corrupted]
    return pd.DataFrame(rows, columns=COLUMNS)

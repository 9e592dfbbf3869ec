"""Patching with candidate lists of several lengths: does what the heads do depend on the list?

The same notes, heads and teacher; only the lists change. The teacher reads each note with its new
list and reasons anew, and its margins are patched on that reasoning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.twins import twins_of
from mechdistill.patching.conditions import Condition, distinct_sets, head_masks
from mechdistill.patching.effects import CELL, OBSERVED, margin_table
from mechdistill.patching.margin_sweep import sweep_margins
from mechdistill.patching.pairs import CORRUPTION, is_eligible, make_pairs
from mechdistill.patching.summary import summarise
from mechdistill.traces.parse import Trace

PATCHED = ("top", "random", "depth_matched", "lowest", "all")
"""Rankings: the printed scores' and their controls."""
OF_NOTES = ["number", "notes", "eligible", "listed", "recall", "micro_f1"]
"""Columns on the notes of a length; see `summarise_lists`."""
OF_CELLS = [
    *CELL,
    *("metric", "n", "clean", "corrupted", "pct_gap", "pct_gap_low", "pct_gap_high"),
    *("top_minus_random", "top_minus_random_low", "top_minus_random_high"),
]
"""Columns of `summarise` that are there even if nothing could be patched at any length."""


def written_table(
    listing: pd.DataFrame, examples: Sequence[Example], traces: Sequence[Trace]
) -> pd.DataFrame:
    """What the teacher made of each note.

    Args:
        listing: of `mechdistill.data.candidates.list_all`, a row an example.
        examples, traces: in the same order.

    Returns:
        The listing with answered (codes answered that count), right (true ones of these) and
        eligible (whether the trace can be patched).
    """
    answers = [set(e.counted(t.answer)) for e, t in zip(examples, traces, strict=True)]
    return listing.assign(
        answered=[len(answer) for answer in answers],
        right=[len(answer & set(e.gold)) for answer, e in zip(answers, examples, strict=True)],
        eligible=[is_eligible(t, e) for e, t in zip(examples, traces, strict=True)],
    )


def patch_listed(
    model: Any,
    examples: Sequence[Example],
    traces: Sequence[Trace],
    space: LabelSpace,
    tokenizer: PreTrainedTokenizerFast,
    planned: Mapping[int, Sequence[Condition]],
    *,
    seed: int,
    branches_per_pass: int,
) -> pd.DataFrame:
    """Margins of each phase's own decisions on its own corruption; columns of `margin_table`.

    Without a row for a phase where no trace can be patched: with long lists a teacher may fail.

    Args:
        planned: conditions by phase; those that `PATCHED` names are run.
        seed: of the twins.
    """
    size = model.config.num_hidden_layers, model.config.num_attention_heads
    able = [(t, e) for e, t in zip(examples, traces, strict=True) if is_eligible(t, e)]
    twins = {
        (twin.example, twin.twin): twin
        for _, example in able
        for twin in twins_of(example, space, tokenizer, seed)
    }
    tables = [pd.DataFrame(columns=[*CELL, "draw", *OBSERVED])]
    for phase, twin in CORRUPTION.items():
        own = [trace for trace, _ in able if (trace.example, twin) in twins]
        if not own:
            continue
        chosen = [condition for condition in planned[phase] if condition.ranking in PATCHED]
        sets = distinct_sets(chosen)
        effects = sweep_margins(
            model,
            make_pairs(own, twins, twin, tokenizer),
            phase,
            head_masks(sets, *size),
            pad_id=tokenizer.pad_token_id,
            branches_per_pass=branches_per_pass,
        )
        tables.append(margin_table(effects, chosen, sets, phase, twin))
    return pd.concat(tables[1:] or tables, ignore_index=True)


def summarise_lists(
    parts: Iterable[tuple[pd.DataFrame, pd.DataFrame]], *, resamples: int, seed: int
) -> pd.DataFrame:
    """Each length of list as `summarise` tells it, shortest first, with what it is about.

    Args:
        parts: of each length what `patch_listed` and `written_table` gave.
        resamples, seed: of the bootstrap over notes.

    Returns:
        The columns of `summarise`, n 0 where nothing could be patched, and before them: number
        (labels asked for, or all), notes, eligible (notes whose trace can be patched), listed (mean
        labels of a list), recall (share of true codes that the retriever lists) and micro_f1 (of
        the teacher's answers).
    """
    found = []
    for margins, written in parts:
        answered, right = int(written["answered"].sum()), int(written["right"].sum())
        gold = int(written["gold"].sum())
        about: dict[str, Any] = {
            "number": str(written["number"].iloc[0]),
            "notes": len(written),
            "eligible": int(written["eligible"].sum()),
            "listed": float(written["listed"].mean()),
            "recall": int(written["retrieved"].sum()) / gold,
            "micro_f1": 2 * right / (answered + gold),
        }
        rows = pd.DataFrame([{"phase": 0, "n": 0}])
        if len(margins):
            rows = summarise(margins, len(written), resamples=resamples, seed=seed)
        found.append(rows.assign(**about))
    whole = pd.concat(found, ignore_index=True)
    return whole.reindex(columns=list(dict.fromkeys([*OF_NOTES, *OF_CELLS, *whole.columns])))

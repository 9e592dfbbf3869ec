"""What two teachers write on the same notes, side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.traces.parse import Trace
from mechdistill.traces.quality import trace_quality


def quality_table(
    examples: Sequence[Example], traces: Sequence[Trace], model: str, space: LabelSpace
) -> pd.DataFrame:
    """One row a split.

    Returns:
        model, split, notes; `trace_quality`; `micro_f1_named`: micro-F1 of all codes of the label
        space that the text names anywhere, for a model that knows the codes and not the form;
        `tokens`, `region_events`, `within_events`, `refine_positions`: means a trace; `status`: how
        many traces have which status.
    """
    by_name = {trace.example: trace for trace in traces}
    rows = []
    for split in dict.fromkeys(example.split for example in examples):
        chosen = [example for example in examples if example.split == split]
        own = [by_name[example.example] for example in chosen]
        counts = Counter(trace.status for trace in own)
        rows.append(
            {
                "model": model,
                "split": split,
                "notes": len(own),
                **trace_quality(chosen, own, space),
                "micro_f1_named": _micro_f1_named(chosen, own, space),
                "tokens": _mean([len(trace.tokens) - trace.prompt_length for trace in own]),
                "region_events": _mean([_count(trace, "region") for trace in own]),
                "within_events": _mean([_count(trace, "within") for trace in own]),
                "refine_positions": _mean([len(trace.refine) for trace in own]),
                "status": ", ".join(f"{status}: {n}" for status, n in sorted(counts.items())),
            }
        )
    return pd.DataFrame(rows)


def _micro_f1_named(
    examples: Sequence[Example], traces: Sequence[Trace], space: LabelSpace
) -> float:
    """Micro-F1 of the codes that stand in the text, whatever punctuation follows them."""
    codes = {label.code for label in space.labels}
    named = [codes & set(re.findall(r"\w+(?:\.\w+)*", trace.text)) for trace in traces]
    hits = sum(len(found & set(e.gold)) for found, e in zip(named, examples, strict=True))
    total = sum(map(len, named)) + sum(len(set(example.gold)) for example in examples)
    return 2 * hits / total if total else 0.0


def _count(trace: Trace, kind: str) -> int:
    return sum(event.kind == kind for event in trace.events)


def _mean(numbers: Sequence[int]) -> float:
    return float(np.mean(numbers))

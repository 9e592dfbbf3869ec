"""What a written trace decided, read off its words: needs no text encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mechdistill.data.examples import Example
from mechdistill.traces.parse import Trace


def region_recall(traces: Sequence[Trace], examples: Mapping[str, Example]) -> NDArray[np.float64]:
    """Share of the example's regions that the trace names in its early words, [n]."""
    return np.array([_share(_named(trace), examples[trace.example].regions) for trace in traces])


def near_miss_rate(traces: Sequence[Trace], examples: Mapping[str, Example]) -> NDArray[np.float64]:
    """Share of the example's near-misses that the trace keeps in its review, [n]."""
    return np.array([_share(_kept(trace), examples[trace.example].near) for trace in traces])


def _named(trace: Trace) -> set[str]:
    return {m.code for m in trace.mentions if m.kind == "region" and m.segment == "early"}


def _kept(trace: Trace) -> set[str]:
    late = [m for m in trace.mentions if m.kind == "label" and m.segment == "late"]
    return {m.code for m in late if m.verdict == "kept"}


def _share(found: set[str], codes: Sequence[str]) -> float:
    return sum(code in found for code in codes) / len(codes)

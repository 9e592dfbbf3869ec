"""Near-Miss Confusion: how close late reasoning comes to what should be ruled out (Eq. 4, App. B).

Confusion = mean over refinement positions q of cos(e(s_q), n(x)), where s_q is the example's
anchor text followed by the late tokens of the model's own trace up to the one that q predicts.
The anchor text fixes most of e(s_q), so the level at no late token stands beside it as
`confusion_0`, and only the change from it is evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.data.tokenizer import decode_trace
from mechdistill.evaluate.anchors import TextAnchors, cosine, mean_or_nan
from mechdistill.evaluate.score_rows import score_rows
from mechdistill.evaluate.token_text import word_groups
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.traces.parse import Trace


class LateWindow(NamedTuple):
    """Where late tokens start in z, and the z-index after each prefix's last token."""

    start: int
    stops: tuple[int, ...]


def confusion(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    tokenizer: PreTrainedTokenizerFast,
    encoder: TextEncoder,
    donors: Sequence[Trace] | None = None,
) -> npt.NDArray[np.float64]:
    """Confusion [n] at each trace's refinement positions (Eq. 4).

    Args:
        donors: for each trace, the trace whose refinement positions count where it has none of
            its own (a patched run that lost its late phase); cut at the trace's end.

    Returns:
        nan where neither has a refinement position within the trace.
    """
    windows = [
        _own_or_donated(trace, donor) for trace, donor in zip(traces, donors or traces, strict=True)
    ]
    texts = [
        prefixes(trace, window, anchors[trace.example].text, tokenizer)
        for trace, window in zip(traces, windows, strict=True)
    ]
    encoder.encode([text for own in texts for text in own])
    return np.array(
        [
            mean_or_nan(cosine(encoder.encode(own), anchors[trace.example].near))
            for trace, own in zip(traces, texts, strict=True)
        ]
    )


def confusion_scores(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    regions: Mapping[str, frozenset[str]],
    tokenizer: PreTrainedTokenizerFast,
    encoder: TextEncoder,
) -> pd.DataFrame:
    """Confusion of each trace beside what it must be compared with.

    Args:
        regions: gold region codes by example id; foreign near-misses share none of them.

    Returns:
        rows (example, metric, value):
        `confusion`;
        `confusion_0`, of the anchor text alone;
        `confusion_change`, the first less the second;
        `confusion_contrast`, less the mean cosine with the anchor centroid;
        `confusion_gold_contrast`, less the mean cosine with the centroid of the gold labels;
        `confusion_other`, with the near-misses of every other example that shares no region.
        A trace without refinement positions has nan in all but `confusion_0`.
    """
    texts = _refine_prefixes(traces, anchors, tokenizer)
    encoder.encode(
        [anchors[trace.example].text for trace in traces] + [text for own in texts for text in own]
    )
    rows: list[tuple[str, str, float]] = []
    for trace, own in zip(traces, texts, strict=True):
        anchor = anchors[trace.example]
        embedded = encoder.encode(own)
        value = mean_or_nan(cosine(embedded, anchor.near))
        start = float(cosine(encoder.encode([anchor.text]), anchor.near)[0])
        foreign = [
            mean_or_nan(cosine(embedded, candidate.near))
            for example, candidate in anchors.items()
            if not regions[example] & regions[trace.example]
        ]
        values = {
            "confusion": value,
            "confusion_0": start,
            "confusion_change": value - start,
            "confusion_contrast": value - mean_or_nan(cosine(embedded, anchor.anchor)),
            "confusion_gold_contrast": value - mean_or_nan(cosine(embedded, anchor.gold)),
            "confusion_other": mean_or_nan(np.array(foreign)),
        }
        rows += [(trace.example, metric, number) for metric, number in values.items()]
    return score_rows(rows)


def shuffled_confusion_scores(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    tokenizer: PreTrainedTokenizerFast,
    encoder: TextEncoder,
    seed: int,
) -> pd.DataFrame:
    """`confusion_shuffled`: Confusion with the late words in random order, lengths as they are.

    What is left of a change of Confusion here comes from the length of the prefix and from which
    words the reasoning holds at all, not from how far it has come. Costs as much as the metric.
    """
    rng = np.random.default_rng(seed)
    shuffled = [_shuffled(trace, tokenizer, rng) for trace in traces]
    texts = _refine_prefixes(shuffled, anchors, tokenizer)
    encoder.encode([text for own in texts for text in own])
    near = [
        mean_or_nan(cosine(encoder.encode(own), anchors[trace.example].near))
        for trace, own in zip(traces, texts, strict=True)
    ]
    return score_rows(
        (trace.example, "confusion_shuffled", value)
        for trace, value in zip(traces, near, strict=True)
    )


def refine_window(trace: Trace) -> LateWindow:
    """The trace's own refinement positions in the reasoning (the answer list is left out).

    Late tokens start with the one that the first refinement position predicts: what a clause names
    before it decides would put the near-miss's own words into every prefix.
    """
    queries = [r.query for r in trace.refine if r.query + 1 < trace.reasoning_end]
    return LateWindow(min(queries, default=-2) + 1, tuple(q + 2 for q in queries))


def prefixes(
    trace: Trace, window: LateWindow, anchor_text: str, tokenizer: PreTrainedTokenizerFast
) -> list[str]:
    """s_q for each stop of the window: the anchor text and the late tokens before the stop."""
    return [
        f"{anchor_text} {decode_trace(tokenizer, trace.tokens[window.start : stop])}"
        for stop in window.stops
    ]


def whose_window(trace: Trace, donor: Trace) -> str:
    """At whose refinement positions `confusion` reads a trace: "own", "donor" or "none"."""
    if refine_window(trace).stops:
        return "own"
    return "donor" if _own_or_donated(trace, donor).stops else "none"


def _own_or_donated(trace: Trace, donor: Trace) -> LateWindow:
    own = refine_window(trace)
    if own.stops:
        return own
    given = refine_window(donor)
    return LateWindow(given.start, tuple(s for s in given.stops if s <= len(trace.tokens)))


def _shuffled(trace: Trace, tokenizer: PreTrainedTokenizerFast, rng: np.random.Generator) -> Trace:
    """The trace with its late reasoning words in random order; the tokens of a word stay together.

    A window's stop may then cut a word in two.
    """
    start = refine_window(trace).start
    if start < 0:
        return trace
    words = word_groups(trace.tokens[start : trace.reasoning_end], tokenizer)
    late = [token for index in rng.permutation(len(words)) for token in words[index]]
    mixed = (*trace.tokens[:start], *late, *trace.tokens[trace.reasoning_end :])
    return replace(trace, tokens=mixed)


def _refine_prefixes(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    tokenizer: PreTrainedTokenizerFast,
) -> list[list[str]]:
    return [
        prefixes(trace, refine_window(trace), anchors[trace.example].text, tokenizer)
        for trace in traces
    ]

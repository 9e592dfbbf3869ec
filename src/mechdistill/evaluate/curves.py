"""Focus and Confusion along the reasoning (Figure 1), over a normalised position t in [0, 1].

Each trace is warped in two linear pieces, so that its first refinement position lies at t = 0.5 and
the two phases of traces of different lengths fall together. Two kinds of curve, always both:
`cumulative` is the mean of all values so far, as Appendix B defines it; `windowed` is the mean
within one bin of t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.evaluate.anchors import TextAnchors, cosine, cumulative_mean
from mechdistill.evaluate.confusion import LateWindow, prefixes, refine_window
from mechdistill.evaluate.token_text import token_texts
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.traces.parse import Trace

Array = npt.NDArray[np.float64]


def curve_table(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    tokenizer: PreTrainedTokenizerFast,
    encoder: TextEncoder,
    bins: int,
    stride: int,
) -> pd.DataFrame:
    """Both curves of both metrics: rows (example, kind, metric, t, value).

    Args:
        stride: Confusion is computed at every so many-th late token, counted back from the last,
            since each costs an embedding of the whole prefix; neighbours hardly differ.

    A trace without a refinement position cannot be warped and has no rows. `t` is the end of its
    bin for cumulative curves and the middle of it for windowed ones.
    """
    rows = []
    usable = [trace for trace in traces if refine_window(trace).stops]
    confusions = confusion_values(usable, anchors, tokenizer, encoder, stride)
    for trace, (index, near) in zip(usable, confusions, strict=True):
        t = warped(trace)
        # before any late token Confusion is a level, not an observation to average
        early = int((index < refine_window(trace).start - trace.prompt_length).sum())
        for metric, at, values, first in (
            ("focus", t, focus_values(trace, anchors[trace.example], tokenizer, encoder), 0),
            ("confusion", t[index], near, early),
        ):
            for kind, curve in (
                ("cumulative", cumulative_curve(at, values, bins, first)),
                ("windowed", windowed_curve(at, values, bins)),
            ):
                ends = np.arange(bins) / bins + (1 / bins if kind == "cumulative" else 0.5 / bins)
                rows += [
                    (trace.example, kind, metric, round(float(x), 6), float(y))
                    for x, y in zip(ends, curve, strict=True)
                    if not np.isnan(y)
                ]
    frame = pd.DataFrame(rows, columns=["example", "kind", "metric", "t", "value"])
    return frame.astype({"t": "float64", "value": "float64"})


def focus_values(
    trace: Trace, anchors: TextAnchors, tokenizer: PreTrainedTokenizerFast, encoder: TextEncoder
) -> Array:
    """cos(e(r_q), c(x)) of each reasoning token [tokens]."""
    texts = token_texts(trace.tokens[trace.prompt_length : trace.reasoning_end], tokenizer)
    values: Array = cosine(encoder.encode(texts), anchors.anchor)
    return values


def confusion_values(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    tokenizer: PreTrainedTokenizerFast,
    encoder: TextEncoder,
    stride: int,
) -> list[tuple[npt.NDArray[np.int64], Array]]:
    """cos(e(s_q), n(x)) along each trace: indices of reasoning tokens, and the values there.

    Tokens before the first refinement all have the value of the anchor text alone; of the late
    ones every `stride`-th is taken, the last among them.
    """
    indices, texts = [], []
    for trace in traces:
        start = refine_window(trace).start
        early = start - trace.prompt_length
        last = trace.reasoning_end - trace.prompt_length - 1
        late = np.arange(last, early - 1, -stride)[::-1]
        stops = tuple(int(i) + trace.prompt_length + 1 for i in late)
        name = anchors[trace.example].text
        grown = prefixes(trace, LateWindow(start, stops), name, tokenizer)
        indices.append(np.concatenate([np.arange(early), late]))
        texts.append([name] * early + grown)
    encoder.encode([text for own in texts for text in own])
    return [
        (index, cosine(encoder.encode(own), anchors[trace.example].near))
        for trace, index, own in zip(traces, indices, texts, strict=True)
    ]


def warped(trace: Trace) -> Array:
    """t of each reasoning token [tokens]: 0 at the first, 0.5 at the first refinement, 1 last.

    Raises:
        ValueError: the trace has no refinement position.
    """
    stops = refine_window(trace).stops
    if not stops:
        raise ValueError(f"trace {trace.example} has no refinement position to put at t = 0.5")
    last = trace.reasoning_end - 1 - trace.prompt_length
    knee = min(stops) - 1 - trace.prompt_length  # the token that the refinement predicts
    position = np.arange(last + 1, dtype=np.float64)
    t: Array = np.interp(position, [0, knee, max(last, knee + 1)], [0.0, 0.5, 1.0])
    return t


def cumulative_curve(t: Array, values: Array, bins: int, first: int = 0) -> Array:
    """Cumulative mean of the values from index `first` on, at the end of each bin [bins].

    Before `first` the value itself; a bin's end without a new token keeps the mean so far.
    """
    means = np.concatenate([values[:first], cumulative_mean(values[first:])])
    ends = np.arange(1, bins + 1) / bins
    index = np.searchsorted(t, ends, side="right") - 1
    curve: Array = np.where(index >= 0, means[np.maximum(index, 0)], np.nan)
    return curve


def windowed_curve(t: Array, values: Array, bins: int) -> Array:
    """Mean of the values within each bin [bins]; nan for a bin without a token."""
    which = np.minimum((t * bins).astype(int), bins - 1)
    count = np.bincount(which, minlength=bins)
    total = np.bincount(which, weights=values, minlength=bins)
    curve: Array = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return curve

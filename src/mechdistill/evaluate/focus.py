"""Reasoning Focus: how closely early reasoning keeps to the example's anchors (Eq. 2, App. B).

Focus(k) = (1/k) sum_{q<=k} cos(e(r_q), c(x)) over the early window of the model's own trace; r_q is
the token that query position q predicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.evaluate.anchors import TextAnchors, Vectors, cosine, mean_or_nan
from mechdistill.evaluate.score_rows import score_rows
from mechdistill.evaluate.token_text import token_texts
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.traces.parse import Trace


def focus(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    tokenizer: PreTrainedTokenizerFast,
    encoder: TextEncoder,
) -> npt.NDArray[np.float64]:
    """Focus [n] over each trace's early window; nan for a trace without one (Eq. 2)."""
    embedded = early_embeddings(traces, tokenizer, encoder)
    return np.array(
        [
            mean_or_nan(cosine(rows, anchors[trace.example].anchor))
            for trace, rows in zip(traces, embedded, strict=True)
        ]
    )


def focus_scores(
    traces: Sequence[Trace],
    anchors: Mapping[str, TextAnchors],
    regions: Mapping[str, frozenset[str]],
    tokenizer: PreTrainedTokenizerFast,
    encoder: TextEncoder,
) -> pd.DataFrame:
    """Focus of each trace beside what it must be compared with.

    Args:
        regions: gold region codes by example id; foreign anchors share none of them.

    Returns:
        rows (example, metric, value) of `focus`; `focus_contrast`, less the mean cosine with the
        near-miss centroid; `focus_shuffled`, the mean of the same with the anchors of every other
        example that shares no region: the level that Focus has by chance; `anchor_near_cosine`.
    """
    rows = []
    for trace, embedded in zip(traces, early_embeddings(traces, tokenizer, encoder), strict=True):
        own = anchors[trace.example]
        foreign = [
            mean_or_nan(cosine(embedded, other.anchor))
            for name, other in anchors.items()
            if not regions[name] & regions[trace.example]
        ]
        value = mean_or_nan(cosine(embedded, own.anchor))
        rows += [
            (trace.example, "focus", value),
            (trace.example, "focus_contrast", value - mean_or_nan(cosine(embedded, own.near))),
            (trace.example, "focus_shuffled", mean_or_nan(np.array(foreign))),
            (trace.example, "anchor_near_cosine", float(cosine(own.anchor[None], own.near)[0])),
        ]
    return score_rows(rows)


def early_embeddings(
    traces: Sequence[Trace], tokenizer: PreTrainedTokenizerFast, encoder: TextEncoder
) -> list[Vectors]:
    """e(r_q) [k, d] of the early window of each trace, k of its own."""
    texts = [_early_texts(trace, tokenizer) for trace in traces]
    encoder.encode([text for early in texts for text in early])
    return [encoder.encode(early) for early in texts]


def _early_texts(trace: Trace, tokenizer: PreTrainedTokenizerFast) -> list[str]:
    words = token_texts(trace.tokens[trace.prompt_length :], tokenizer)
    return [words[q + 1 - trace.prompt_length] for q in trace.early]

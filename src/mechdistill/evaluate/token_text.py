"""The text that stands for one token of a trace in a sentence encoder, and its words as tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from mechdistill.data.token_spans import token_spans

_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*")
"""Letters and digits, marks within them included: "I50.21", "x-ray"."""


def token_texts(ids: Sequence[int], tokenizer: PreTrainedTokenizerFast) -> list[str]:
    """Text of each token, a piece of a word widened to its word; "" for special tokens.

    A piece such as "##dy" means nothing to a sentence encoder, so "dy", "sp", "nea" give
    "dyspnea" three times. A token of several words ("heart failure") stays as it is.
    """
    text, spans = token_spans(tokenizer, ids)
    special = set(tokenizer.all_special_ids)
    words = [match.span() for match in _WORD.finditer(text)]
    return [
        "" if token in special else _widened(text, words, *_trimmed(text, *span))
        for token, span in zip(ids, spans, strict=True)
    ]


def word_groups(ids: Sequence[int], tokenizer: PreTrainedTokenizerFast) -> list[list[int]]:
    """The ids in groups of one word and the white space before it."""
    text, spans = token_spans(tokenizer, ids)
    groups: list[list[int]] = []
    begin = 0
    for token, (start, end) in zip(ids, spans, strict=True):
        if not groups or (text[start:end][:1].isspace() and text[begin:start].strip()):
            groups.append([])
            begin = start
        groups[-1].append(token)
    return groups


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def _widened(text: str, words: Sequence[tuple[int, int]], start: int, end: int) -> str:
    """The slice, extended to the ends of the words that it cuts."""
    if start >= end:
        return ""
    for place in (start, end - 1):
        index = bisect_right(words, (place, len(text))) - 1
        if index >= 0 and words[index][0] <= place < words[index][1]:
            start, end = min(start, words[index][0]), max(end, words[index][1])
    return text[start:end]

"""The text that stands for one token of a trace in a sentence encoder."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from mechdistill.data.tokenizer import decode_trace


def token_texts(ids: Sequence[int], tokenizer: PreTrainedTokenizerFast) -> list[str]:
    """Text of each token, a piece of a word widened to its word; "" for special tokens.

    A piece such as "##dy" means nothing to a sentence encoder, so "dy", "sp", "nea" give
    "dyspnea" three times. A token of several words ("heart failure") stays as it is.
    """
    text = decode_trace(tokenizer, ids)
    texts, cursor = [], 0
    for token in ids:
        piece = decode_trace(tokenizer, [token]).strip()
        start = text.find(piece, cursor)
        if not piece or start < 0:  # a special token, or part of a character
            texts.append(piece)
            continue
        cursor = start + len(piece)
        texts.append(_widened(text, start, cursor))
    return texts


def _widened(text: str, start: int, stop: int) -> str:
    """The slice, extended over the letters and digits that it cuts through at either end."""
    if text[start].isalnum():
        while start > 0 and text[start - 1].isalnum():
            start -= 1
    if text[stop - 1].isalnum():
        while stop < len(text) and text[stop].isalnum():
            stop += 1
    return text[start:stop]

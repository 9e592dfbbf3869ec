"""Where tokens stand in the text that they spell, for any fast tokenizer.

Ids that a model wrote need not be the ids that a tokenizer would choose for the same text, so
nothing here encodes a text again to find out what stands where: the ids themselves are decoded,
one more at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

Span = tuple[int, int]

_ANCHOR = "\n"
"""A character that no tokenizer merges with a following letter, digit, bracket or single space."""
_WORD = "a"
"""One that none merges with other white space that follows it."""


def token_spans(tokenizer: Any, ids: Sequence[int]) -> tuple[str, list[Span]]:
    """The text of the ids, special tokens spelled out, and each token's [start, end) in it.

    A space that parts a token from the one before belongs to the later one. A token that holds a
    part of a character (byte-level vocabularies, byte fallback) holds the character, so the
    tokens of one character overlap.
    """
    ids = list(ids)
    text = decode(tokenizer, ids)
    spans, done = [], 0
    for count in range(1, len(ids) + 1):
        so_far = decode(tokenizer, ids[:count])
        # an invalid run of bytes can take back what its first bytes spelled: never go back
        start, done = done, max(done, _shared(so_far, text))
        spans.append((start, done + (len(so_far) > done)))  # more: bytes of an unfinished character
    return text, spans


def decode(tokenizer: Any, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
    """Exactly what the ids spell: no clean-up of spaces."""
    return str(
        tokenizer.decode(
            list(ids),
            skip_special_tokens=skip_special_tokens,
            clean_up_tokenization_spaces=False,
        )
    )


@lru_cache(maxsize=1 << 16)
def encode_continuation(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Token ids of a text that goes on from other text, see `continuation_spans`."""
    return continuation_spans(tokenizer, text)[0]


def continuation_spans(tokenizer: Any, text: str) -> tuple[tuple[int, ...], tuple[Span, ...]]:
    """Token ids of a text that goes on from other text, and the [start, end) characters of each.

    Some tokenizers treat the start of a text as the start of a word ("prefix space"), which it is
    not here.
    """
    before = _WORD if re.match(r"\s(?!\S)|[^\S ]", text) else _ANCHOR
    encoded = tokenizer.backend_tokenizer.encode(before + text, add_special_tokens=False)
    behind = [
        (token, (max(0, start - len(before)), end - len(before)))
        for token, (start, end) in zip(encoded.ids, encoded.offsets)
        if end > len(before)
    ]
    return tuple(token for token, _ in behind), tuple(span for _, span in behind)


def covering(spans: Sequence[Span], wanted: Span) -> tuple[int, ...]:
    """Indices of the tokens that overlap [start, end), those without text inside it included."""
    begin, stop = wanted
    return tuple(i for i, (start, end) in enumerate(spans) if start < stop and begin < end)


def _shared(first: str, second: str) -> int:
    """Length of the common beginning of two texts."""
    if second.startswith(first):
        return len(first)
    return next((i for i, (a, b) in enumerate(zip(first, second)) if a != b), len(second))

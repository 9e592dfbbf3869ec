"""Up to which byte of a text the tokens have come: the measure by which tokenisations are compared.

Bytes, since a token of a byte-level vocabulary may end inside a character. What a tokenizer makes
of a text is placed by the offsets that it gives into the text as it was given, whatever a
normaliser made of it; ids that a model wrote are placed by what they spell
(`mechdistill.data.token_spans`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel

from mechdistill.data.token_spans import Span, token_spans
from mechdistill.errors import InputError

INSIDE = -1
"""End of a token that ends inside a character, where its vocabulary does not tell at which byte."""

_ONE_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]


@dataclass(frozen=True)
class TokenEnds:
    """Tokens of a text.

    `size`: bytes of the text in UTF-8. `ends`: bytes of it that a token and all before it spell,
    or INSIDE; they never go back. White space between two tokens belongs to the later one. A token
    that spells nothing ends where the one before it does. `special`: whether a token is a special
    one of its tokenizer.
    """

    size: int
    ends: tuple[int, ...]
    special: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.ends)

    def filled(self) -> TokenEnds:
        """The last token that spells text ends where the text does.

        What is behind it (white space, mostly) has no token: it must not keep apart two
        tokenisations of the same text, of which one has a token there.
        """
        last = max((i for i in range(len(self)) if _begin(self.ends, i) < self.ends[i]), default=-1)
        ends = [self.size if i >= last >= 0 else end for i, end in enumerate(self.ends)]
        return TokenEnds(self.size, tuple(ends), self.special)

    def without_last(self) -> TokenEnds:
        """All tokens but the last, which spells nothing."""
        return TokenEnds(self.size, self.ends[:-1], self.special[:-1])

    def spelled(self, index: int) -> Span:
        """[start, end) bytes of a token; of the tokens of its character where that is not known."""
        known = (end for end in self.ends[index:] if end != INSIDE)
        return _begin(self.ends, index), next(known, self.size)


def ends_in_text(tokenizer: Any, text: str, *, add_special_tokens: bool) -> TokenEnds:
    """Of the tokens that a tokenizer cuts a text into.

    Raises:
        InputError: the tokenizer does not tell where in a text its tokens stand.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"{type(tokenizer).__name__} is a slow tokenizer: it does not say where tokens stand",
            "load it with AutoTokenizer, whose fast classes do",
        )
    encoded = tokenizer.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)
    spans = [(int(start), int(end)) for start, end in encoded.offsets]
    special = _special(tokenizer, encoded.ids)
    _require_places(tokenizer, text, encoded.tokens, spans, special)
    return _ends(tokenizer, text, encoded.ids, spans, special)


def ends_of_ids(tokenizer: Any, ids: Sequence[int]) -> tuple[str, TokenEnds]:
    """The text that ids spell, without special tokens and the white space around it, and the ends.

    A special token spells nothing here: another tokenizer could not spell it.
    """
    whole, spans = token_spans(tokenizer, ids)
    special = _special(tokenizer, ids)
    kept = [True] * len(whole)
    for (start, end), is_special in zip(spans, special, strict=True):
        kept[start:end] = [not is_special] * (end - start)
    before = [0, *accumulate(kept)]
    text = "".join(character for character, stays in zip(whole, kept, strict=True) if stays)
    lead, size = len(text) - len(text.lstrip()), len(text.strip())

    def place(character: int) -> int:
        return min(max(before[character] - lead, 0), size)

    moved = [(place(start), place(end)) for start, end in spans]
    return text.strip(), _ends(tokenizer, text.strip(), ids, moved, special)


def joined(parts: Iterable[TokenEnds]) -> TokenEnds:
    """Tokens of texts that follow one another."""
    parts = list(parts)
    starts = accumulate((part.size for part in parts), initial=0)
    ends = tuple(
        end if end == INSIDE else start + end
        for start, part in zip(starts, parts)
        for end in part.ends
    )
    special = tuple(flag for part in parts for flag in part.special)
    return TokenEnds(sum(part.size for part in parts), ends, special)


def _begin(ends: Sequence[int], index: int) -> int:
    """Where the tokens before one have come to."""
    return next((end for end in reversed(ends[:index]) if end != INSIDE), 0)


def _special(tokenizer: Any, ids: Sequence[int]) -> tuple[bool, ...]:
    known = set(tokenizer.all_special_ids)
    return tuple(token in known for token in ids)


def _require_places(
    tokenizer: Any,
    text: str,
    tokens: Sequence[str],
    spans: Sequence[Span],
    special: Sequence[bool],
) -> None:
    """Offsets must lead through the text: those of some tokenizers are all (0, 0)."""
    placed = [
        (token, end)
        for token, (_, end), is_special in zip(tokens, spans, special, strict=True)
        if not is_special
    ]
    furthest = accumulate((end for _, end in placed), max)
    lost = [token for (token, end), reached in zip(placed, furthest) if end < reached]
    if text.strip() and not any(end for _, end in placed):
        lost = [token for token, _ in placed]
    if not lost:
        return
    raise InputError(
        f"{type(tokenizer).__name__} gives a token no place in a text of {len(text)} characters",
        "use the model's fast tokenizer with its own normaliser and pre-tokenizer",
    )


def _ends(
    tokenizer: Any,
    text: str,
    ids: Sequence[int],
    spans: Sequence[Span],
    special: Sequence[bool],
) -> TokenEnds:
    """Ends in bytes, from spans in characters that run through the text."""
    at = [0, *accumulate(len(character.encode()) for character in text)]
    ends: list[int] = []
    reached, runs = 0, list(_runs(spans))
    for run, following in zip(runs, _next_starts(runs, spans, len(text)), strict=True):
        start, stop = spans[run[0]][0], max(spans[i][1] for i in run)
        if start < stop:
            # what no token holds, but for white space: the accent of a composed letter
            stop += len(text[stop:following].rstrip())
        reached = max(reached, at[stop])
        behind = _sizes(tokenizer, [ids[i] for i in run], text[start:stop]) if run[1:] else []
        ends += [reached - size if size else INSIDE for size in behind] + [reached]
    return TokenEnds(at[-1], tuple(ends), tuple(special))


def _sizes(tokenizer: Any, ids: Sequence[int], text: str) -> list[int]:
    """Bytes behind each token but the last, of those that spell a text; 0 where not known."""
    pieces = [_bytes(tokenizer, token) for token in ids]
    if not all(pieces) or b"".join(pieces).lstrip() != text.encode().lstrip():
        return [0] * (len(ids) - 1)
    return [sum(map(len, pieces[index:])) for index in range(1, len(ids))]


def _runs(spans: Sequence[Span]) -> Iterator[list[int]]:
    """Tokens that hold parts of a character together; mostly one token alone."""
    run: list[int] = []
    for index, (start, end) in enumerate(spans):
        # a token without text is no part of a character
        if run and not (start < max(spans[i][1] for i in run) and start < end):
            yield run
            run = []
        run.append(index)
    if run:
        yield run


def _next_starts(runs: Sequence[list[int]], spans: Sequence[Span], size: int) -> list[int]:
    """Where the next run with text begins, for each run."""
    starts = []
    for run in reversed(runs):
        starts.append(size)
        start, end = spans[run[0]]
        size = start if start < end else size
    return starts[::-1]


def _bytes(tokenizer: Any, token: int) -> bytes:
    """The bytes that a token of a byte-level or byte-fallback vocabulary stands for, else none."""
    piece = str(tokenizer.convert_ids_to_tokens(int(token)))
    if one := _ONE_BYTE.fullmatch(piece):
        return bytes([int(one[1], 16)])
    decoder = tokenizer.backend_tokenizer.decoder
    if decoder is None or b'"ByteLevel"' not in decoder.__getstate__():
        return b""
    if not all(character in _BYTES for character in piece):
        return b""
    return bytes(_BYTES[character] for character in piece)


def _byte_alphabet() -> dict[str, int]:
    """Byte of each character of byte-level vocabularies: printable ones stand for themselves."""
    others = [byte for byte in range(256) if byte not in _PRINTABLE]
    known = {chr(byte): byte for byte in _PRINTABLE}
    known |= {chr(256 + number): byte for number, byte in enumerate(others)}
    assert set(known) == set(ByteLevel.alphabet())
    return known


_BYTES = _byte_alphabet()

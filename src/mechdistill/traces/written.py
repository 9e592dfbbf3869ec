"""What a model wrote, as tokens and as units of the world, and where its choices show in tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mechdistill.data.labels import LabelSpace
from mechdistill.data.token_spans import encode_continuation, token_spans
from mechdistill.data.units import Unit, cut, lexicon


@dataclass(frozen=True)
class Choice:
    """The first token at which a target parts from some of its alternatives.

    `foils` are the tokens of the alternatives that part here, by their index among all; `deeper`
    counts those that share the target's token and part from it later.
    """

    query: int
    target: int
    foils: dict[int, int]
    deeper: int


@dataclass(frozen=True)
class Written:
    """A trace, from `start` of z on.

    `tokens`: its ids without the one that ends the text. `units`: what they spell. `bounds`:
    [start, end) positions in z of each unit's tokens; a token that spells parts of two units
    belongs to both.
    """

    tokenizer: Any
    start: int
    tokens: tuple[int, ...]
    text: str
    spans: tuple[tuple[int, int], ...]
    units: tuple[Unit, ...]
    bounds: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ids: Sequence[int], start: int, tokenizer: Any, space: LabelSpace) -> Written:
        """From the ids that a model wrote behind a prompt of `start` tokens."""
        text, spans = token_spans(tokenizer, ids)
        units = cut(text, lexicon(tokenizer, space))
        starts = [begin for begin, _ in spans]
        ends = list(accumulate((end for _, end in spans), max))
        bounds = [
            (start + bisect_right(ends, unit.start), start + bisect_left(starts, unit.end))
            for unit in units
        ]
        return cls(tokenizer, start, tuple(ids), text, tuple(spans), tuple(units), tuple(bounds))

    def position(self, index: int) -> int:
        """First token in z of a unit, behind the last one that of what follows the trace."""
        return self.bounds[index][0] if index < len(self.units) else self.start + len(self.tokens)

    def text_of(self, index: int) -> str:
        """The text of a unit as it is written."""
        unit = self.units[index]
        return self.text[unit.start : unit.end]

    def choice(self, index: int, target: str, alternatives: Sequence[str]) -> Choice | None:
        """Where, in place of a unit, `target` and its alternatives part.

        Each is written as the tokenizer writes it at this place: with the white space before the
        unit and with what follows it, so that one may begin with another. Where the model wrote
        the target in other tokens than the tokenizer would, its own tokens count, and an
        alternative is written on from the last of them that it shares.

        Returns:
            None where the trace departs from the target before, or all alternatives are the target.
        """
        first, before, after = self._around(index)
        own = self.tokens[first:]
        wanted = encode_continuation(self.tokenizer, before + target + after)
        others = [
            encode_continuation(self.tokenizer, before + other + after) for other in alternatives
        ]
        if self.text_of(index) == target and own[: len(wanted)] != wanted:
            wanted = own
            others = [self._written_on(first, before + other + after) for other in alternatives]
        depths = [_shared(wanted, other) for other in others]
        possible = [
            depth < min(len(wanted), len(other))
            for depth, other in zip(depths, others, strict=True)
        ]
        if alternatives and not any(possible):
            return None
        parting = [depth for depth, fits in zip(depths, possible, strict=True) if fits]
        depth = min(parting, default=0)
        if own[:depth] != wanted[:depth]:
            return None
        here = {
            i: others[i][depth] for i, found in enumerate(depths) if possible[i] and found == depth
        }
        deeper = sum(possible) - len(here)
        return Choice(self.start + first - 1 + depth, wanted[depth], here, deeper)

    def paths(
        self, index: int, alternatives: Sequence[str]
    ) -> tuple[int, tuple[int, ...], list[tuple[int, ...]]]:
        """Tokens of a unit as the trace writes it, and of what could stand in its place.

        All are written as in `choice`, with what follows the unit.

        Returns:
            position in z of the first token, the trace's own tokens, those of each alternative.
        """
        first, before, after = self._around(index)
        own = self.tokens[first:]
        usual = encode_continuation(self.tokenizer, before + self.text_of(index) + after)
        if own[: len(usual)] == usual:
            others = [
                encode_continuation(self.tokenizer, before + other + after)
                for other in alternatives
            ]
            return self.start + first, usual, others
        others = [self._written_on(first, before + other + after) for other in alternatives]
        return self.start + first, own, others

    def _around(self, index: int) -> tuple[int, str, str]:
        """First token of a unit among the trace's own, the white space before it, what follows."""
        unit = self.units[index]
        first = self.bounds[index][0] - self.start
        if first and self.text[slice(*self.spans[first - 1])] == " ":
            first -= 1  # the space before a word may be a token of its own
        before = self.text[self.spans[first][0] : unit.start]
        behind = self.units[index + 1].end if index + 1 < len(self.units) else len(self.text)
        return first, before, self.text[unit.end : behind] or " ."

    def _written_on(self, first: int, text: str) -> tuple[int, ...]:
        """Tokens of a text that begins with as many of the trace's own, from `first` on, as fit."""
        count, begin = 0, self.spans[first][0]
        while first + count < len(self.tokens):
            end = self.spans[first + count][1]
            if not text.startswith(self.text[begin:end]):
                break
            count += 1
        done = self.spans[first + count - 1][1] - begin if count else 0
        own = self.tokens[first : first + count]
        return own + encode_continuation(self.tokenizer, text[done:])


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Number of tokens that two texts begin with together."""
    return next(
        (i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second))
    )

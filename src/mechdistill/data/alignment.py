"""What two tokenisations of one text have in common: groups of keys, and query positions.

Keys: a group is a smallest stretch of text at whose end a token ends in both tokenisations. The
attention that a model pays a group is the sum over its tokens (mass adds up, an average would
not). Tokens that are special, or sinks, in either tokenisation have no counterpart: they go to one
bucket on each side, with all of a group that they spell a part of, so that rows keep their mass.

Queries: the position after which a token is predicted. It is shared where the text before that
token ends on the same byte in both; others have no counterpart and are counted by the caller.

Both follow from the ends alone: with equal tokenisations every text token is a group of its own and
every query maps to itself; what maps from a first to a second and on to a third tokenisation maps
from the first to the third.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from mechdistill.data.token_ends import INSIDE, TokenEnds

BUCKET = -1
"""Group of tokens that are no text to both sides."""


@dataclass(frozen=True)
class Alignment:
    """`first` and `second`: group of each token, counted in the order of the text, or BUCKET.
    `count`: number of groups; none is empty on either side. `queries`: position of the second for
    each shared position of the first, both increasing.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    count: int
    queries: dict[int, int]


def align(
    first: TokenEnds, second: TokenEnds, first_sinks: Sequence[bool], second_sinks: Sequence[bool]
) -> Alignment:
    """Align two tokenisations of one text; the sinks say of each token whether it has no group.

    Raises:
        ValueError: they are not of one text.
    """
    if first.size != second.size:
        raise ValueError(f"texts of {first.size} and of {second.size} bytes are aligned")
    first, second = first.filled(), second.filled()
    shared = sorted({*first.ends} & {*second.ends} - {INSIDE, 0})
    sides = [_places(side, shared) for side in (first, second)]
    lost = {
        group
        for side, places, sinks in zip((first, second), sides, (first_sinks, second_sinks))
        for token, group in enumerate(places)
        if sinks[token] and side.spelled(token)[0] < side.spelled(token)[1]
    }
    kept = [group for group in range(len(shared)) if group not in lost]
    number = {group: index for index, group in enumerate(kept)}
    groups = [
        tuple(BUCKET if sink else number.get(group, BUCKET) for group, sink in zip(places, sinks))
        for places, sinks in zip(sides, (first_sinks, second_sinks))
    ]
    return Alignment(groups[0], groups[1], len(kept), _queries(first, second))


def _places(side: TokenEnds, shared: Sequence[int]) -> list[int]:
    """Group of each token before any goes to the bucket; -1 if the text has none."""
    if not shared:
        return [BUCKET] * len(side)
    return [
        min(bisect_left(shared, side.spelled(token)[1]), len(shared) - 1)
        for token in range(len(side))
    ]


def _queries(first: TokenEnds, second: TokenEnds) -> dict[int, int]:
    """Positions that see the same text, of those that a token follows.

    Of several that see the same (tokens without text) it is the last: what follows it goes on with
    the text.
    """
    at = [
        {end: position for position, end in enumerate(side.ends[:-1]) if end != INSIDE}
        for side in (first, second)
    ]
    return {position: at[1][end] for end, position in sorted(at[0].items()) if end in at[1]}

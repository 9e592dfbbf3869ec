"""What a note made of a document holds: its true codes, their near-misses, and decoys.

A document relates to codes of several regions. A note takes one code of each, up to a number; the
document's other codes and its filter rows stay out of the candidates, since they are no misses.
Codes differ in how often they are true. Near-misses are drawn such that in a pair either code is as
often the true one, and decoys by the frequencies of regions: so the candidate list alone hardly
tells what is true (the data card says how much).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from mechdistill.data.labels import Document, LabelSpace
from mechdistill.data.splits import split_of

Pair = tuple[str, str]

_ROUNDS = 500
_MOST_SHARE = 0.45
_NEVER = 0.5
"""Documents that a code of none counts as, so that it is a near-miss at times."""


@dataclass(frozen=True)
class Choices:
    """What can be drawn for a document: by region its true codes and their possible near-misses.

    `decoys`: regions that the document has nothing to do with, with a finding that it does not
    name.
    """

    document: Document
    gold: Mapping[str, tuple[str, ...]]
    near: Mapping[str, tuple[str, ...]]
    decoys: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pool:
    """The documents of a split that make notes, in their order."""

    space: LabelSpace
    choices: tuple[Choices, ...]

    @cached_property
    def often(self) -> dict[str, float]:
        """In how many notes a code, and some code of a region, is true; one a document."""
        names = [x.code for x in self.space.labels] + [x.code for x in self.space.regions]
        often = dict.fromkeys(names, 0.0)
        for choices in self.choices:
            for region, codes in choices.gold.items():
                often[region] += 1
                for code in codes:
                    often[code] += 1 / len(codes)
        return {name: number or _NEVER for name, number in often.items()}

    @cached_property
    def near_weight(self) -> dict[str, float]:
        """By code, how likely it is drawn as the near-miss of a sibling, relative to the others.

        With f the frequencies of a region's codes, x solves x_a (sum of x over all but a) = f_a.
        Then f_a P(near b | true a) = x_a x_b, the same with a and b exchanged. Where one code is
        true as often as all its siblings together there is no solution, and it counts as a little
        less often.
        """
        weights: dict[str, float] = {}
        for region in self.space.regions:
            codes = self.space.members(region.code)
            share = np.array([self.often[code] for code in codes], dtype=np.float64)
            others = share.sum() - share.max()
            share = np.minimum(share, others * _MOST_SHARE / (1 - _MOST_SHARE))
            share /= share.sum()
            x = np.sqrt(share)
            for _ in range(_ROUNDS):
                x = (x + share / (x.sum() - x)) / 2  # damped: it would swing between two values
            weights |= dict(zip(codes, x.tolist(), strict=True))
        return weights

    def draw_groups(
        self, choices: Choices, most: int, groups: int, rng: np.random.Generator
    ) -> tuple[list[Pair], list[str]]:
        """Pairs of the groups in context, the true ones first, and the true codes of these.

        Args:
            choices: of one of the documents.
            most: true codes at most.
            groups: of the candidate list.
        """
        count = min(most, len(choices.gold))
        regions = list(choices.gold)
        pairs, gold = [], []
        for index in rng.permutation(len(regions))[:count].tolist():
            region = regions[index]
            true = choices.gold[region][int(rng.integers(len(choices.gold[region])))]
            pairs.append(_in_order(true, _draw(choices.near[region], self.near_weight, rng)))
            gold.append(true)
        left = list(choices.decoys)
        for _ in range(groups - count):
            region = _draw(left, self.often, rng)
            left.remove(region)
            first = _draw(self.space.members(region), self.often, rng)
            second = _draw(self.space.siblings(first), self.near_weight, rng)
            pairs.append(_in_order(first, second))
        return pairs, gold


@lru_cache(maxsize=8)
def pool_of(
    space: LabelSpace, seed: int, split: str, fewest: int, groups: int, unseen: bool
) -> Pool:
    """The documents of a split that make notes: a document is in one split.

    Args:
        fewest: true codes that a note has at least.
        groups: of a candidate list.
        unseen: whether codes that are never gold in training may be gold.
    """
    found = []
    for document in space.documents:
        if split_of([document.title], seed) == split:
            choices = choices_of(space, document, unseen)
            if len(choices.gold) >= fewest and len(choices.decoys) >= groups:
                found.append(choices)
    return Pool(space, tuple(found))


def choices_of(space: LabelSpace, document: Document, unseen: bool) -> Choices:
    """What can be drawn for a document; `unseen`: codes that are never gold in training too."""
    taken = {*document.related, *document.filtered}
    gold: dict[str, list[str]] = {}
    for code in document.related:
        if unseen or code not in space.never_gold:
            gold.setdefault(space.label(code).region, []).append(code)
    near = {region: tuple(c for c in space.members(region) if c not in taken) for region in gold}
    touched = {space.label(code).region for code in taken}
    return Choices(
        document=document,
        gold={region: tuple(codes) for region, codes in gold.items() if near[region]},
        near=near,
        decoys=tuple(
            region.code
            for region in space.regions
            if region.code not in touched and not set(region.evidence) <= set(document.findings)
        ),
    )


def _draw(items: Sequence[str], weight: Mapping[str, float], rng: np.random.Generator) -> str:
    """One of the items, by weight."""
    weights = np.array([weight[item] for item in items], dtype=np.float64)
    return items[int(rng.choice(len(items), p=weights / weights.sum()))]


def _in_order(first: str, second: str) -> Pair:
    return (first, second) if first < second else (second, first)

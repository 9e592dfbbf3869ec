"""Candidate lists of many labels: all of them, or those that a retriever picks for each note.

Drawn notes list a few pairs of sibling codes. Here their lists are written anew; the notes, what is
true of them and which near-misses were drawn stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from mechdistill.data.examples import Example, Span
from mechdistill.data.frame import Frame
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import Problem
from mechdistill.data.prompts import CANDIDATES, REASONING, candidate_pieces, reference_words
from mechdistill.data.retrieval import LabelRetriever

Number = int | Literal["all"]
Pair = tuple[str, str]

COLUMNS = ("example", "split", "number", "listed", "gold", "retrieved")
"""Of `listing_table`."""


@dataclass(frozen=True)
class Listed:
    """A note with its list, and how many of its true codes the retriever put on the list."""

    example: Example
    retrieved: int


class CandidateLists:
    """Writes the candidate lists of a study.

    A region is listed with two of its codes at least, so that there is something to decide. The
    order of regions is drawn: for each list, and once for all where a list holds all labels, so
    that it is the same in every prompt.

    Args:
        space: the label space.
        frame: of the study's prompts.
        number: labels of a list. A list holds fewer where the next label would be alone in its
            region.
        force_gold: list true codes and their near-misses, whether retrieved or not. Otherwise a
            true code that is not retrieved is not listed: it stays gold, the reference reasoning
            leaves it out, and an answer cannot but miss it.
        list_first: put the list before the note, else behind it.
        seed: of the order.
    """

    def __init__(
        self,
        space: LabelSpace,
        frame: Frame,
        number: Number,
        *,
        force_gold: bool,
        list_first: bool,
        seed: int,
    ) -> None:
        self.number = number
        self._space, self._frame = space, frame
        self._force_gold, self._list_first = force_gold, list_first
        self._retriever = LabelRetriever(space)
        regions = [region.code for region in space.regions]
        order = np.random.default_rng([seed, 5]).permutation(len(regions))
        self._all = [space.members(regions[index]) for index in order]

    @classmethod
    def of(
        cls, space: LabelSpace, frame: Frame, section: Mapping[str, Any], seed: int
    ) -> list[CandidateLists]:
        """Lists of each number of the section `data.candidates`, the study's own first."""
        return [
            cls(
                space,
                frame,
                number,
                force_gold=section["force_gold"],
                list_first=section["list_first"],
                seed=seed,
            )
            for number in dict.fromkeys([section["number"], *section["sweep"]])
        ]

    def listed(self, drawn: Example, rng: np.random.Generator) -> Listed:
        """The example with a new list.

        Args:
            drawn: with the list that was drawn with it, behind the note.
            rng: of the order of regions.
        """
        note, gap = self._note_of(drawn)
        if self.number == "all":
            return Listed(self._rewritten(drawn, note, gap, self._all), len(drawn.gold))
        ranked = self._retriever.ranked(note)
        open_to = [code for code in ranked if code not in drawn.unasked]
        groups = choose(self._space, open_to, (), self.number)
        retrieved = sum(code in groups.get(r, ()) for code, r in zip(drawn.gold, drawn.regions))
        if self._force_gold:
            pairs = list(zip(drawn.gold, drawn.near, strict=True))
            groups = choose(self._space, open_to, pairs, self.number)
        order = [list(groups)[index] for index in rng.permutation(len(groups))]
        near = tuple(
            self._near(pair, groups.get(region, ()))
            for *pair, region in zip(drawn.gold, drawn.near, drawn.regions, strict=True)
        )
        shown = [tuple(sorted(groups[region])) for region in order]
        return Listed(self._rewritten(replace(drawn, near=near), note, gap, shown), retrieved)

    def _near(self, pair: Sequence[str], group: Sequence[str]) -> str:
        """The near-miss that was drawn, if it is listed; else the best sibling that is."""
        gold, near = pair
        if gold not in group or near in group:
            return near
        return next(code for code in group if code != gold)

    def _note_of(self, drawn: Example) -> tuple[str, str]:
        """The note alone, and the space between it and its list."""
        end = len(drawn.prompt) - len(self._frame.behind)
        text = drawn.prompt[len(self._frame.before) : end]
        told = text[: text.rindex(CANDIDATES)]
        note = told.rstrip()
        return note, told[len(note) :]

    def _rewritten(
        self, drawn: Example, note: str, gap: str, groups: Sequence[Sequence[str]]
    ) -> Example:
        pieces = " ".join(piece.text for piece in candidate_pieces(self._space, groups))
        if self._list_first:
            text, moved = gap.join([pieces, note, REASONING]), len(pieces) + len(gap)
        else:
            text, moved = f"{note}{gap}{pieces} {REASONING}", 0
        listed = tuple(code for group in groups for code in group)
        problems = [
            Problem(
                region, gold, near, self._space.label(gold).cue, self._space.label(near).cue, ()
            )
            for region, gold, near in zip(drawn.regions, drawn.gold, drawn.near, strict=True)
        ]
        missing = {index for index, gold in enumerate(drawn.gold) if gold not in listed}
        return replace(
            drawn,
            prompt=self._frame(text),
            candidates=listed,
            evidence=_moved(drawn.evidence, moved),
            cues=_moved(drawn.cues, moved),
            reference=" ".join(reference_words(self._space, problems, missing)),
        )


def relisted(drawn: Example, lists: Sequence[CandidateLists], rng: np.random.Generator) -> Example:
    """A drawn example with one of the lists; as it was drawn where there are none."""
    if not lists:
        return drawn
    return lists[int(rng.integers(len(lists)))].listed(drawn, rng).example


def list_all(
    drawn: Sequence[Example], lists: CandidateLists, seed: int
) -> tuple[list[Example], pd.DataFrame]:
    """All examples with their lists, and a row on each.

    Returns:
        The examples, and by example: split, number (labels asked for), listed (labels there are),
        gold (true codes) and retrieved (those that the retriever put on a list of that length).
    """
    examples, rows = [], []
    for one in drawn:
        found = lists.listed(one, np.random.default_rng([seed, 6, *one.example.encode()]))
        counts = len(found.example.candidates), len(one.gold), found.retrieved
        examples.append(found.example)
        rows.append((one.example, one.split, str(lists.number), *counts))
    return examples, pd.DataFrame(rows, columns=list(COLUMNS))


def choose(
    space: LabelSpace, ranked: Sequence[str], forced: Collection[Pair], number: int
) -> dict[str, list[str]]:
    """Codes to be listed, by region.

    Args:
        ranked: codes that may be listed, best first.
        forced: pairs of a region each that are listed in any case.
        number: codes in all; one less where every code left would be alone in its region.

    Returns:
        region -> codes, forced ones first, then best first; two at least.
    """
    members: dict[str, list[str]] = {}
    for code in ranked:
        members.setdefault(space.label(code).region, []).append(code)
    groups = {space.label(pair[0]).region: list(pair) for pair in forced}
    left = number - sum(map(len, groups.values()))
    for code in ranked:
        region = space.label(code).region
        if region not in groups:
            new = members[region][:2]
            if len(new) < 2 or left < 2:
                continue
            groups[region] = []
        else:
            new = [] if code in groups[region] else [code]
        if len(new) <= left:
            groups[region] += new
            left -= len(new)
    return groups


def _moved(spans: Sequence[Span], by: int) -> tuple[Span, ...]:
    return tuple((start + by, end + by) for start, end in spans)

"""Draws cases (problems, candidates, distractors) from a label space and writes them as text."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdistill.data.documents import Pool, pool_of
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import Piece, Problem, findings_of, note_pieces
from mechdistill.data.prompts import (
    LISTING,
    REASONING,
    candidate_pieces,
    reference_words,
    shortlist_words,
)
from mechdistill.data.splits import split_of
from mechdistill.errors import InputError

Pair = tuple[str, str]

UNSEEN_SPLIT = "test"  # the only split with never_gold codes as gold


@dataclass(frozen=True)
class WorldSettings:
    """Sizes of the world; `seed` decides the split of each combination of gold codes."""

    seed: int
    groups_in_context: int
    problems_min: int
    problems_max: int

    @classmethod
    def of(cls, seed: int, world: Mapping[str, Any]) -> "WorldSettings":
        """From the root seed and the section `data.world`.

        Raises:
            InputError: the candidate list has no room for a decoy, or the world for distractors.
        """
        groups, most = world["groups_in_context"], world["problems_max"]
        if most + 2 > groups or groups >= world["regions"]:
            raise InputError(
                f"data.world.groups_in_context is {groups}",
                f"give at least problems_max + 2 = {most + 2} and fewer than the "
                f"{world['regions']} regions, so that history and absences keep a decoy open",
            )
        return cls(seed, groups, world["problems_min"], most)


@dataclass(frozen=True)
class Case:
    """One note with its candidates and its templated reasoning, as pieces of one token each."""

    problems: tuple[Problem, ...]
    pairs: tuple[Pair, ...]  # candidate groups in list order
    pieces: tuple[Piece, ...]  # the prompt, without <bos>
    reference: tuple[str, ...]
    document: str = ""  # title of the document that the note was made of
    unasked: tuple[str, ...] = ()  # codes of the document beside the gold ones

    @property
    def prompt(self) -> str:
        return " ".join(piece.text for piece in self.pieces)


def draw_case(
    space: LabelSpace, settings: WorldSettings, split: str, rng: np.random.Generator
) -> Case:
    """Draw a case whose combination of gold codes, or whose document, belongs to `split`.

    Without documents, groups of a region and two of its codes are drawn first; then some groups are
    made true and, in each, one of the two codes: so the candidate list tells neither region nor
    code. With documents see `documents`. History and absent findings name regions that are not
    true, some in the list, some not.

    Raises:
        InputError: no document of the split makes a note.
    """
    document = ""
    told: tuple[str, ...] = ()
    taken: set[str] = set()
    unrelated = [region.code for region in space.regions]
    if space.documents:
        pool = _filled(documents_of(space, settings, split), split)
        choices = pool.choices[int(rng.integers(len(pool.choices)))]
        document, told = choices.document.title, choices.document.findings
        taken = {*choices.document.related, *choices.document.filtered}
        unrelated = list(choices.decoys)
        pairs, gold = pool.draw_groups(
            choices, settings.problems_max, settings.groups_in_context, rng
        )
    else:
        count = int(rng.integers(settings.problems_min, settings.problems_max + 1))
        pairs, gold = _draw_groups(space, settings, split, count, rng)
    wording, problems, sentences = space.wording, [], []
    for code, pair in zip(gold, pairs, strict=False):
        sentence = wording.sentences[int(rng.integers(len(wording.sentences)))]
        near = pair[1 - pair.index(code)]
        problems.append(_draw_problem(space, code, near, findings_of(sentence), told, rng))
        sentences.append(sentence)
    listed = [space.region_of(pair[0]).code for pair in pairs]
    outside = [region for region in unrelated if region not in listed]
    rng.shuffle(outside)
    history, negated = _draw_distractors(space, listed[len(gold) :], outside, told, rng)
    shown = [pairs[index] for index in rng.permutation(len(pairs))]
    pieces = note_pieces(wording, problems, sentences, history, negated, rng)
    return Case(
        problems=tuple(problems),
        pairs=tuple(shown),
        pieces=(*pieces, *candidate_pieces(space, shown), Piece(REASONING)),
        reference=tuple(reference_words(space, problems)),
        document=document,
        unasked=tuple(sorted(taken.difference(gold))),
    )


def documents_of(space: LabelSpace, settings: WorldSettings, split: str) -> Pool:
    """The documents of a split that make notes; none in a world without documents."""
    return pool_of(
        space,
        settings.seed,
        split,
        settings.problems_min,
        settings.groups_in_context,
        split == UNSEEN_SPLIT,
    )


def draw_listing(
    space: LabelSpace, settings: WorldSettings, rng: np.random.Generator
) -> tuple[list[str], list[str]]:
    """A candidate list without a note, and its groups read out in another order, as words.

    It teaches to look a group up in the list and to letter its codes; nothing is decided in it.
    """
    regions = rng.permutation(len(space.regions))[: settings.groups_in_context]
    pairs = [_draw_pair(space.members(space.regions[index].code), rng) for index in regions]
    prompt = [*(piece.text for piece in candidate_pieces(space, pairs)), LISTING]
    listing = []
    for number, index in enumerate(rng.permutation(len(pairs))):
        listing += [*shortlist_words(space, number % settings.problems_max, pairs[index]), "."]
    return prompt, listing


def _filled(pool: Pool, split: str) -> Pool:
    if not pool.choices:
        raise InputError(
            f"no document of split {split!r} makes a note",
            "raise data.world.regions or labels_per_region, or lower data.world.problems_min",
        )
    return pool


def _draw_groups(
    space: LabelSpace, settings: WorldSettings, split: str, count: int, rng: np.random.Generator
) -> tuple[list[Pair], list[str]]:
    """Pairs of the groups in context, the true ones first, and the gold codes of the true ones.

    A single code is no combination: notes of one problem are split by note alone. (Were they split
    by code, a code that is never gold alone in training would give its sibling away.)
    """
    while True:
        regions = rng.permutation(len(space.regions))[: settings.groups_in_context]
        pairs = [_draw_pair(space.members(space.regions[index].code), rng) for index in regions]
        gold = [_draw_gold(space, pair, split, rng) for pair in pairs[:count]]
        if count == 1 or split_of(gold, settings.seed) == split:
            return pairs, gold


def _draw_pair(codes: Sequence[str], rng: np.random.Generator) -> Pair:
    """Two codes of a region, in code order."""
    first, second = sorted(rng.permutation(len(codes))[:2].tolist())
    return codes[first], codes[second]


def _draw_gold(space: LabelSpace, pair: Pair, split: str, rng: np.random.Generator) -> str:
    """One of the pair; outside the split of unseen codes never one that must not be gold."""
    first = int(rng.integers(2))
    if split != UNSEEN_SPLIT and pair[first] in space.never_gold:
        return pair[1 - first]
    return pair[first]


def _draw_problem(
    space: LabelSpace,
    gold: str,
    near: str,
    findings: int,
    told: Collection[str],
    rng: np.random.Generator,
) -> Problem:
    """Findings that the document tells come before others of the region."""
    region = space.region_of(gold)
    order = rng.permutation(len(region.evidence)).tolist()
    order.sort(key=lambda index: region.evidence[index] not in told)  # stable
    return Problem(
        region=region.code,
        gold=gold,
        near=near,
        cue=space.label(gold).cue,
        near_cue=space.label(near).cue,
        evidence=tuple(region.evidence[index] for index in order[:findings]),
    )


def _draw_distractors(
    space: LabelSpace,
    decoys: Sequence[str],
    outside: Sequence[str],
    told: Collection[str],
    rng: np.random.Generator,
) -> tuple[list[str], list[str]]:
    """A past region and an absent finding, of two regions; at least one decoy stays unmentioned.

    A finding that the document tells is not absent.
    """
    mentionable = [*decoys[1:], *outside[: len(decoys)]]
    past, absent = rng.choice(len(mentionable), 2, replace=False)
    evidence = [x for x in space.region(mentionable[absent]).evidence if x not in told]
    return (
        [space.region(mentionable[past]).name],
        [evidence[int(rng.integers(len(evidence)))]],
    )

"""The `icd` world: draws cases (problems, candidates, distractors) and writes them as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import SENTENCES, Piece, Problem, findings_of, note_pieces
from mechdistill.data.prompts import candidate_pieces, pair_of, reference_words
from mechdistill.data.splits import split_of

UNSEEN_SPLIT = "test"  # the only split with never_gold codes as gold


@dataclass(frozen=True)
class WorldSettings:
    """Sizes of the world; `seed` decides the split of each combination of gold codes."""

    seed: int
    groups_in_context: int
    problems_min: int
    problems_max: int


@dataclass(frozen=True)
class Case:
    """One note with its candidates and its templated reasoning, as pieces of one token each."""

    problems: tuple[Problem, ...]
    pairs: tuple[tuple[str, str], ...]  # candidate groups in list order
    pieces: tuple[Piece, ...]  # the prompt, without <bos>
    reference: tuple[str, ...]

    @property
    def prompt(self) -> str:
        return " ".join(piece.text for piece in self.pieces)


def draw_case(
    space: LabelSpace, settings: WorldSettings, split: str, rng: np.random.Generator
) -> Case:
    """Draw a case whose combination of gold codes belongs to `split`.

    The candidate list is drawn alike for true and other regions: a region and two of its codes.
    History and absent findings name regions that are not true, some in the list, some not.
    """
    gold = _draw_gold(space, settings, split, rng)
    problems, sentences = [], []
    for code in gold:
        sentence = SENTENCES[int(rng.integers(len(SENTENCES)))]
        problems.append(_draw_problem(space, code, findings_of(sentence), rng))
        sentences.append(sentence)
    true = {problem.region for problem in problems}
    others = [region.code for region in space.regions if region.code not in true]
    rng.shuffle(others)
    decoys = others[: settings.groups_in_context - len(problems)]
    pairs = [pair_of(problem) for problem in problems]
    for region in decoys:
        first, second = sorted(rng.choice(len(space.members(region)), 2, replace=False))
        pairs.append((space.members(region)[first], space.members(region)[second]))
    rng.shuffle(pairs)
    history, negated = _draw_distractors(space, decoys, others[len(decoys) :], rng)
    pieces = note_pieces(problems, sentences, history, negated, rng)
    shown = [(str(a), str(b)) for a, b in pairs]
    return Case(
        problems=tuple(problems),
        pairs=tuple(shown),
        pieces=(*pieces, *candidate_pieces(space, shown)),
        reference=tuple(reference_words(space, problems)),
    )


def _draw_gold(
    space: LabelSpace, settings: WorldSettings, split: str, rng: np.random.Generator
) -> list[str]:
    """Codes of distinct regions whose combination belongs to `split`."""
    while True:
        count = int(rng.integers(settings.problems_min, settings.problems_max + 1))
        regions = rng.choice(len(space.regions), count, replace=False)
        members = [space.members(space.regions[index].code) for index in regions]
        gold = [codes[int(rng.integers(len(codes)))] for codes in members]
        if split != UNSEEN_SPLIT and not set(gold).isdisjoint(space.never_gold):
            continue
        if split_of(gold, settings.seed) == split:
            return gold


def _draw_problem(space: LabelSpace, gold: str, findings: int, rng: np.random.Generator) -> Problem:
    siblings = space.siblings(gold)
    near = siblings[int(rng.integers(len(siblings)))]
    region = space.region_of(gold)
    order = rng.permutation(len(region.evidence))
    return Problem(
        region=region.code,
        gold=gold,
        near=near,
        cue=space.label(gold).cue,
        near_cue=space.label(near).cue,
        evidence=tuple(region.evidence[index] for index in islice(order, findings)),
    )


def _draw_distractors(
    space: LabelSpace, decoys: Sequence[str], outside: Sequence[str], rng: np.random.Generator
) -> tuple[list[str], list[str]]:
    """A past region and an absent finding, of two regions; at least one decoy stays unmentioned."""
    mentionable = [*decoys[1:], *outside[: len(decoys)]]
    past, absent = rng.choice(len(mentionable), 2, replace=False)
    evidence = space.region(mentionable[absent]).evidence
    return (
        [space.region(mentionable[past]).name],
        [evidence[int(rng.integers(len(evidence)))]],
    )

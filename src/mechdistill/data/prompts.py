"""The wording of prompts and of the templated reasoning that a teacher learns from.

A prompt is a note and its candidate list. For models that have not learnt the form of the reasoning
an instruction states it, and a demonstration shows it.
"""

from collections.abc import Collection, Sequence

import numpy as np

from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.data.notes import Piece, Problem, Role, note_pieces
from mechdistill.data.wording import CLINICAL

OPTIONS = ("(a)", "(b)")
CANDIDATES, REASONING, LISTING = "Candidates:", "Reasoning:", "Listing:"
OVERVIEW, REVIEW, ANSWER = "Overview:", "Review:", "Answer:"
VERDICT, REJECTED = "=>", "not"

INSTRUCTION = (
    "Answer in this form. Overview: #1 disease . Review: #1 disease code1 (a) or code2 (b) => (a) "
    "code1 since finding , not (b) code2 . Answer: code1 ."
)
"""For chat models. The form is that of `reference_words`."""

_DEMONSTRATED = LabelSpace(
    regions=(
        Region("B35", "ringworm", ("ring of scales", "itchy patch")),
        Region("L40", "psoriasis", ("silvery scales", "nail pits")),
    ),
    labels=(
        Label("B35.0", "B35.0 ringworm of scalp", "B35", "of scalp", "Tinea capitis"),
        Label("B35.4", "B35.4 ringworm of body", "B35", "of body", "Tinea corporis"),
        Label("L40.0", "L40.0 plaque psoriasis", "L40", "plaque", "Psoriasis vulgaris"),
        Label("L40.4", "L40.4 guttate psoriasis", "L40", "guttate", "Guttate psoriasis"),
    ),
    never_gold=(),
    source="two categories that no label space of the world holds",
)


def pair_of(problem: Problem) -> tuple[str, str]:
    """Gold and near-miss in code order: the option letter of a code depends on its sibling."""
    first, second = sorted((problem.gold, problem.near))
    return first, second


def candidate_pieces(space: LabelSpace, groups: Sequence[Sequence[str]]) -> list[Piece]:
    """`Candidates: heart failure I50.21 ... or I50.31 ... ; asthma J45.20 ... or ... .`

    Args:
        groups: codes of one region each.
    """
    pieces = [Piece(CANDIDATES)]
    for position, group in enumerate(groups):
        pieces += [Piece(";")] * (position > 0)
        pieces.append(Piece(space.region_of(group[0]).name, Role.CANDIDATE))
        for number, code in enumerate(group):
            pieces += [Piece("or")] * (number > 0)
            pieces.append(Piece(space.label(code).text, Role.CANDIDATE))
    return [*pieces, Piece(".")]


def reference_words(
    space: LabelSpace, problems: Sequence[Problem], left_out: Collection[int] = ()
) -> list[str]:
    """The trace in three parts, one word a token; problems that are left out keep their numbers.

    `Overview: #1 heart failure . Review: #1 heart failure I50.21 ... (a) or I50.31 ... (b) =>
    (a) I50.21 ... since acute systolic , not (b) I50.31 ... . Answer: I50.21 ... .`
    The pair is read off the list; its letters are given in the clause, so a code's letter depends
    on its sibling. The cue is cited after the option is taken: the decision cannot be copied
    from it.
    """
    told = [(i, problem) for i, problem in enumerate(problems) if i not in left_out]
    words = [OVERVIEW]
    for position, (index, problem) in enumerate(told):
        words += [","] * (position > 0)
        words += [f"#{index + 1}", space.region(problem.region).name]
    words += [".", REVIEW]
    for index, problem in told:
        words += clause_words(space, index, problem)
    words.append(ANSWER)
    for position, (_, problem) in enumerate(told):
        words += [";"] * (position > 0) + [space.label(problem.gold).text]
    return [*words, "."]


def clause_words(space: LabelSpace, index: int, problem: Problem) -> list[str]:
    """One clause of the review: the pair, the verdict, its cue, the one ruled out."""
    pair = pair_of(problem)
    kept, rejected = pair.index(problem.gold), pair.index(problem.near)
    texts = [space.label(code).text for code in pair]
    verdict = [VERDICT, OPTIONS[kept], texts[kept], "since", problem.cue]
    ruled_out = [",", REJECTED, OPTIONS[rejected], texts[rejected], "."]
    return [*shortlist_words(space, index, pair), *verdict, *ruled_out]


def shortlist_words(space: LabelSpace, index: int, pair: tuple[str, str]) -> list[str]:
    """`#1 heart failure I50.21 ... (a) or I50.31 ... (b)`"""
    first, second = (space.label(code).text for code in pair)
    name = space.region_of(pair[0]).name
    return [f"#{index + 1}", name, first, OPTIONS[0], "or", second, OPTIONS[1]]


def demonstration() -> tuple[str, str]:
    """Prompt and reasoning of one invented note, about codes that are in no label space."""
    shown = Problem(
        "B35", "B35.4", "B35.0", "of body", "of scalp", ("ring of scales", "itchy patch")
    )
    rng = np.random.default_rng(0)  # picks between synonyms
    note = note_pieces(CLINICAL, [shown], [CLINICAL.sentences[1]], ["warts"], ["nail pits"], rng)
    pairs = [("L40.0", "L40.4"), ("B35.0", "B35.4")]
    pieces = [*note, *candidate_pieces(_DEMONSTRATED, pairs), Piece(REASONING)]
    reasoning = reference_words(_DEMONSTRATED, [shown])
    return " ".join(piece.text for piece in pieces), " ".join(reasoning)

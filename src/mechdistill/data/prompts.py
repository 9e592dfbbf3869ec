"""The candidate list that ends a prompt, and the templated reasoning that a teacher learns from."""

from collections.abc import Sequence

from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import Piece, Problem, Role

OPTIONS = ("(a)", "(b)")
OVERVIEW, REVIEW, ANSWER = "Overview:", "Review:", "Answer:"
VERDICT, REJECTED = "=>", "not"


def pair_of(problem: Problem) -> tuple[str, str]:
    """Gold and near-miss in code order: the option letter of a code depends on its sibling."""
    first, second = sorted((problem.gold, problem.near))
    return first, second


def candidate_pieces(space: LabelSpace, pairs: Sequence[tuple[str, str]]) -> list[Piece]:
    """`Candidates: heart failure (a) I50.21 ... (b) I50.31 ... ; asthma (a) ... . Reasoning:`"""
    pieces = [Piece("Candidates:")]
    for position, pair in enumerate(pairs):
        pieces += [Piece(";")] * (position > 0)
        pieces.append(Piece(space.region_of(pair[0]).name, Role.CANDIDATE))
        for option, code in zip(OPTIONS, pair, strict=True):
            pieces += [Piece(option), Piece(space.label(code).text, Role.CANDIDATE)]
    return [*pieces, Piece("."), Piece("Reasoning:")]


def reference_words(space: LabelSpace, problems: Sequence[Problem]) -> list[str]:
    """The trace in three parts, one word a token.

    `Overview: #1 heart failure . Review: #1 heart failure (a) I50.21 ... or (b) I50.31 ... =>
    (a) I50.21 ... since acute systolic , not (b) I50.31 ... . Answer: I50.21 ... .`
    The cue is cited only after the option is taken, so that the decision cannot be copied from it.
    """
    words = [OVERVIEW]
    for index, problem in enumerate(problems):
        words += [","] * (index > 0)
        words += [f"#{index + 1}", space.region(problem.region).name]
    words += [".", REVIEW]
    for index, problem in enumerate(problems):
        words += clause_words(space, index, problem)
    words.append(ANSWER)
    for index, problem in enumerate(problems):
        words += [";"] * (index > 0) + [space.label(problem.gold).text]
    return [*words, "."]


def clause_words(space: LabelSpace, index: int, problem: Problem) -> list[str]:
    """One clause of the review: the pair, the verdict, its cue, the one ruled out."""
    pair = pair_of(problem)
    kept, rejected = pair.index(problem.gold), pair.index(problem.near)
    (a, b) = (space.label(code).text for code in pair)
    named = [f"#{index + 1}", space.region(problem.region).name]
    shortlist = [OPTIONS[0], a, "or", OPTIONS[1], b]
    verdict = [VERDICT, OPTIONS[kept], (a, b)[kept], "since", problem.cue]
    return [*named, *shortlist, *verdict, ",", REJECTED, OPTIONS[rejected], (a, b)[rejected], "."]

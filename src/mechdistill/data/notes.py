"""Readable synthetic notes: sections and sentences around findings and cues.

A note is a list of pieces. One piece is one token of the world's tokenizer: a word, a punctuation
mark or a whole concept ("dyspnea on exertion"). Each piece knows what it is there for, so that
twins can change findings or cues and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from mechdistill.data.wording import Wording

MAX_PROBLEMS = 6


class Role(StrEnum):
    """What a piece of a note is there for."""

    TEXT = "text"
    SYNONYM = "synonym"  # a word of the sentence that could be another one
    FILLER = "filler"  # a finding that supports nothing
    EVIDENCE = "evidence"
    CUE = "cue"
    HISTORY = "history"  # a region of the past
    NEGATED = "negated"  # a finding that is absent
    CANDIDATE = "candidate"


@dataclass(frozen=True)
class Piece:
    text: str
    role: Role = Role.TEXT
    problem: int = -1  # index of the problem that a finding or a cue belongs to


@dataclass(frozen=True)
class Problem:
    """One true code of a note, its near-miss, and the findings that the note tells."""

    region: str
    gold: str
    near: str
    cue: str
    near_cue: str
    evidence: tuple[str, ...]


def findings_of(sentence: Sequence[str]) -> int:
    """Number of findings that a sentence tells."""
    return sum(part == "e" for part in sentence)


def problem_sentence(
    wording: Wording,
    index: int,
    problem: Problem,
    sentence: Sequence[str],
    rng: np.random.Generator,
) -> list[Piece]:
    """`#1 leg swelling and orthopnea noted , acute systolic .`"""
    findings, lists = iter(problem.evidence), wording.lists
    pieces = [Piece(f"#{index + 1}")]
    for part in sentence:
        if part == "e":
            pieces.append(Piece(next(findings), Role.EVIDENCE, index))
        elif part == "c":
            pieces.append(Piece(problem.cue, Role.CUE, index))
        elif part == "f":
            pieces.append(Piece(_pick(wording.fillers, rng), Role.FILLER))
        elif part in lists:
            pieces.append(Piece(_pick(lists[part], rng), Role.SYNONYM))
        else:
            pieces.append(Piece(part))
    return pieces


def note_pieces(
    wording: Wording,
    problems: Sequence[Problem],
    sentences: Sequence[Sequence[str]],
    history: Sequence[str],
    negated: Sequence[str],
    rng: np.random.Generator,
) -> list[Piece]:
    """The note without its candidates: history, course, absent findings, general state."""
    pieces = [Piece(wording.start)]
    for position, name in enumerate(history):
        pieces += [Piece(",")] * (position > 0) + [Piece(wording.past), Piece(name, Role.HISTORY)]
    pieces += [Piece("."), Piece(wording.course)]
    for index, (problem, sentence) in enumerate(zip(problems, sentences, strict=True)):
        pieces += problem_sentence(wording, index, problem, sentence, rng)
    pieces.append(Piece(wording.absences))
    for position, finding in enumerate(negated):
        pieces += [Piece(",")] * (position > 0) + [
            Piece(wording.absent),
            Piece(finding, Role.NEGATED),
        ]
    pieces += [Piece("."), Piece(wording.remarks), Piece(_pick(wording.fillers, rng), Role.FILLER)]
    return [*pieces, Piece(_pick(wording.neutral_cues, rng), Role.FILLER), Piece(".")]


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]

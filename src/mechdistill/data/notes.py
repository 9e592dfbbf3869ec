"""Readable synthetic notes: sections and sentences around findings and cues.

A note is a list of pieces. One piece is one token of the world's tokenizer: a word, a punctuation
mark or a whole concept ("dyspnea on exertion"). Each piece knows what it is there for, so that
twins can change findings or cues and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

MAX_PROBLEMS = 6
NOTE_START = "History:"


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


FILLERS = (
    "appetite preserved",
    "sleeping well",
    "weight stable",
    "mobility unchanged",
    "afebrile",
    "vital signs stable",
    "good oral intake",
    "comfortable at rest",
)
NEUTRAL_CUES = ("as described", "of this kind", "under observation", "as before")
NEUTRAL_WORDS = (
    "well",
    "today",
    "so far",
    "at present",
    "as it was",
    "in this way",
    "as it was before",
    "at this time only",
    "as it was some time ago",
    "as far as is known now",
    "as far as is known at this time",
    "as far as is known from all that was told",
    "as far as is known from all that was told at this time",
    "in this way and in no other as far as is known at this time",
)
"""Say nothing; behind a neutral phrase or a cue they make it longer (see `twins`)."""
FOUND = ("noted", "seen", "found", "observed")
CAME = ("admitted", "referred", "presenting", "seen today")
SOURCES = ("examination", "imaging", "workup", "review")

# "e", "f": first and further finding; "c": cue; "n": neutral phrase; upper case: word lists above.
SENTENCES = (
    ("CAME", "with", "e", "and", "e", ",", "c", "on", "SOURCES", "."),
    ("e", "and", "e", "FOUND", ",", "c", "."),
    ("e", "FOUND", "on", "SOURCES", ";", "c", "."),
    ("CAME", "for", "e", ";", "f", ",", "FOUND", "c", "."),
    ("c", "on", "SOURCES", ",", "with", "e", "."),
)
_WORDS = {"FOUND": FOUND, "CAME": CAME, "SOURCES": SOURCES}


def findings_of(sentence: Sequence[str]) -> int:
    """Number of findings that a sentence tells."""
    return sum(part == "e" for part in sentence)


def problem_sentence(
    index: int, problem: Problem, sentence: Sequence[str], rng: np.random.Generator
) -> list[Piece]:
    """`#1 leg swelling and orthopnea noted , acute systolic .`"""
    findings = iter(problem.evidence)
    pieces = [Piece(f"#{index + 1}")]
    for part in sentence:
        if part == "e":
            pieces.append(Piece(next(findings), Role.EVIDENCE, index))
        elif part == "c":
            pieces.append(Piece(problem.cue, Role.CUE, index))
        elif part == "f":
            pieces.append(Piece(_pick(FILLERS, rng), Role.FILLER))
        elif part in _WORDS:
            pieces.append(Piece(_pick(_WORDS[part], rng), Role.SYNONYM))
        else:
            pieces.append(Piece(part))
    return pieces


def note_pieces(
    problems: Sequence[Problem],
    sentences: Sequence[Sequence[str]],
    history: Sequence[str],
    negated: Sequence[str],
    rng: np.random.Generator,
) -> list[Piece]:
    """The note without its candidates: history, course, absent findings, general state."""
    pieces = [Piece(NOTE_START)]
    for position, name in enumerate(history):
        pieces += [Piece(",")] * (position > 0) + [Piece("past"), Piece(name, Role.HISTORY)]
    pieces += [Piece("."), Piece("Course:")]
    for index, (problem, sentence) in enumerate(zip(problems, sentences, strict=True)):
        pieces += problem_sentence(index, problem, sentence, rng)
    pieces.append(Piece("Absent:"))
    for position, finding in enumerate(negated):
        pieces += [Piece(",")] * (position > 0) + [Piece("no"), Piece(finding, Role.NEGATED)]
    pieces += [Piece("."), Piece("General:"), Piece(_pick(FILLERS, rng), Role.FILLER)]
    return [*pieces, Piece(_pick(NEUTRAL_CUES, rng), Role.FILLER), Piece(".")]


def _pick(words: Sequence[str], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]

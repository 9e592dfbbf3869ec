"""Text of the world cut into its units: regions, labels, numbers, options, headings, other words.

The longest phrase that the world knows is taken at each place, so that the region inside a label's
text or a finding's is no mention of the region. White space between the parts of a phrase may be
anything, or nothing where a punctuation mark parts them. With the world's own tokenizer a unit is
a token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import MAX_PROBLEMS
from mechdistill.data.prompts import ANSWER, OPTIONS, REVIEW, VERDICT
from mechdistill.data.tokenizer import vocabulary

Kind = Literal["region", "label", "number", "option", "review", "answer", "verdict", "stop", "word"]

_ATOM = re.compile(r"\w+|[^\w\s]")
_INSIDE_WORDS = frozenset(".-'’/")


@dataclass(frozen=True)
class Unit:
    """[start, end) of a text. `key`: code of a region or label, number of a problem, else
    the words.
    """

    kind: Kind
    key: str
    start: int
    end: int


@dataclass(frozen=True)
class Lexicon:
    """Known phrases by their first atom, longest first: (atoms, kind, key)."""

    phrases: dict[str, list[tuple[tuple[str, ...], Kind, str]]]

    @classmethod
    def of(cls, space: LabelSpace, special: Sequence[str]) -> Lexicon:
        """All phrases of the world, labels also by their codes alone, and special tokens."""
        known: dict[str, tuple[Kind, str]] = {text: ("word", text) for text in special}
        known |= {text: ("word", text) for text in vocabulary(space)}
        known |= {f"#{n + 1}": ("number", str(n + 1)) for n in range(MAX_PROBLEMS)}
        known |= {option: ("option", option) for option in OPTIONS}
        known |= {REVIEW: ("review", REVIEW), ANSWER: ("answer", ANSWER)}
        known |= {VERDICT: ("verdict", VERDICT), ".": ("stop", ".")}
        known |= {region.name: ("region", region.code) for region in space.regions}
        for label in space.labels:
            known |= {label.text: ("label", label.code), label.code: ("label", label.code)}
        phrases: dict[str, list[tuple[tuple[str, ...], Kind, str]]] = {}
        for text, (kind, key) in known.items():
            atoms = tuple(_ATOM.findall(text))
            phrases.setdefault(atoms[0], []).append((atoms, kind, key))
        for same_start in phrases.values():
            same_start.sort(key=lambda phrase: -len(phrase[0]))
        return cls(phrases)


@lru_cache(maxsize=8)
def lexicon(tokenizer: Any, space: LabelSpace) -> Lexicon:
    """The lexicon of a label space; special tokens of the tokenizer are units of their own."""
    return Lexicon.of(space, tokenizer.all_special_tokens)


def cut(text: str, known: Lexicon) -> list[Unit]:
    """All units of a text in order; together they cover all but white space."""
    atoms = [(match.group(), match.start(), match.end()) for match in _ATOM.finditer(text)]
    units: list[Unit] = []
    index = 0
    while index < len(atoms):
        kind, key, count = _longest(atoms, index, known)
        units.append(Unit(kind, key, atoms[index][1], atoms[index + count - 1][2]))
        index += count
    return units


_Atom = tuple[str, int, int]


def _longest(atoms: Sequence[_Atom], index: int, known: Lexicon) -> tuple[Kind, str, int]:
    """Kind and key of the unit that begins at an atom, and its number of atoms."""
    for phrase, kind, key in known.phrases.get(atoms[index][0], ()):
        stop = index + len(phrase)
        same = tuple(atom for atom, _, _ in atoms[index:stop]) == phrase
        # "I10" is not what "I10.9" says
        if same and not (phrase[-1][-1].isdigit() and _goes_on(atoms, stop - 1)):
            return kind, key, len(phrase)
    count = 1
    while _goes_on(atoms, index + count - 1):  # an unknown word or number, "J18.9", "x-ray"
        count += 2
    return "word", " ".join(atom for atom, _, _ in atoms[index : index + count]), count


def _goes_on(atoms: Sequence[_Atom], index: int) -> bool:
    """Whether a word goes on behind this atom with a mark and more letters, all without space."""
    if index + 2 >= len(atoms):
        return False
    (word, _, end), (mark, start, stop), (more, begin, _) = atoms[index : index + 3]
    touching = end == start and stop == begin
    return touching and mark in _INSIDE_WORDS and word[-1].isalnum() and more[0].isalnum()

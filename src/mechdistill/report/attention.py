"""A head's attention on the words of a note, and how much of it falls on anchor tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from mechdistill.errors import InputError
from mechdistill.heads.places import Places
from mechdistill.report.rankings import Head

Kind = Literal["", "evidence", "cue", "anchor"]
KINDS: dict[str, str] = {
    "evidence": "finding that supports a true code",
    "cue": "cue that decides between siblings",
    "anchor": "name of a true region",
}


@dataclass(frozen=True)
class Word:
    """A token of the prompt, its role and the share of attention on it."""

    text: str
    kind: Kind
    weight: float


@dataclass(frozen=True)
class AttendedNote:
    """The prompt of one note with the attention of one head, mean over the phase's queries."""

    example: str
    head: Head
    words: tuple[Word, ...]
    elsewhere: float
    """Share of the attention on the reasoning's own tokens."""


def with_anchor_mass(rows: pd.DataFrame, places: Mapping[str, Places]) -> pd.DataFrame:
    """Attention rows with `anchor_mass` and what as many random prompt tokens would get.

    Anchor tokens are the findings that support the true codes and the names of the true regions
    in the prompt. The expectation is over uniformly drawn prompt tokens; sinks (position 0 and
    special tokens) are neither drawn nor counted.

    Raises:
        InputError: a row's example has no trace, or is of another length than its trace.
    """
    mass, expected = [], []
    for example, weights in zip(rows["example"], rows["weights"], strict=True):
        place = _place(example, len(weights), places)
        row = np.asarray(weights, dtype=float)
        open_keys = [p for p in range(place.prompt_length) if p not in set(place.sinks)]
        anchors = [p for p in anchor_tokens(place) if p in set(open_keys)]
        mass.append(float(row[anchors].sum()))
        expected.append(float(row[open_keys].sum()) * len(anchors) / len(open_keys))
    return rows.assign(anchor_mass=mass, anchor_mass_expected=expected)


def anchor_tokens(place: Places) -> list[int]:
    """Positions of the supporting findings and of the true regions' names in the prompt."""
    return sorted({*place.evidence, *place.anchor_mentions})


def attended_note(
    rows: pd.DataFrame, phase: int, head: Head, place: Places, tokenizer: Any
) -> AttendedNote:
    """The stored row of `head` on one note, split into words.

    Raises:
        InputError: no row of that head and note was kept.
    """
    chosen = rows[
        (rows["phase"] == phase)
        & (rows["layer"] == head[0])
        & (rows["head"] == head[1])
        & (rows["example"] == place.example)
    ]
    if chosen.empty:
        raise InputError(
            f"there is no attention row of head {head} on {place.example}",
            "show a note whose attention was kept: lower report.worked_example or raise "
            "heads.attention_examples",
        )
    weights = np.asarray(chosen["weights"].iloc[0], dtype=float)
    _place(place.example, len(weights), {place.example: place})
    kinds = kinds_of(place)
    texts = tokenizer.convert_ids_to_tokens(list(place.tokens[: place.prompt_length]))
    words = tuple(Word(text, kinds[p], float(weights[p])) for p, text in enumerate(texts))
    return AttendedNote(place.example, head, words, float(weights[place.prompt_length :].sum()))


def kinds_of(place: Places) -> list[Kind]:
    """The role of each prompt token."""
    kinds: list[Kind] = [""] * place.prompt_length
    marked: Sequence[tuple[Kind, Sequence[int]]] = (
        ("anchor", place.anchor_mentions),
        ("evidence", place.evidence),
        ("cue", [p for cue in place.cues for p in cue]),
    )
    for kind, positions in marked:
        for position in positions:
            kinds[position] = kind
    return kinds


def _place(example: str, keys: int, places: Mapping[str, Places]) -> Places:
    remedy = "make the traces and the attention rows again from the same study"
    place = places.get(example)
    if place is None:
        raise InputError(f"attention was kept of {example}, which has no trace", remedy)
    if keys != len(place.tokens):
        raise InputError(
            f"the attention row of {example} has {keys} keys, its trace {len(place.tokens)} tokens",
            remedy,
        )
    return place

"""A head's attention on the words of a note and its reasoning, and how much falls on anchors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mechdistill.data.token_spans import decode
from mechdistill.errors import InputError
from mechdistill.heads.places import Places
from mechdistill.report.rankings import Head
from mechdistill.traces.parse import Trace

KINDS = {
    "evidence": "finding that supports a true code",
    "cue": "cue that decides between siblings",
    "anchor": "name of a true region",
    "kept": "code that the reasoning keeps",
    "rejected": "code that the reasoning rules out",
}
"""Role of a token -> what it is. The last two occur in the reasoning only."""


@dataclass(frozen=True)
class Word:
    """A token, its role (a key of `KINDS`, or nothing) and the share of attention on it."""

    text: str
    kind: str
    weight: float


@dataclass(frozen=True)
class AttendedTrace:
    """Note and reasoning with the attention of one head, mean over the phase's queries."""

    example: str
    head: Head
    words: tuple[Word, ...]
    prompt_length: int

    @property
    def note(self) -> tuple[Word, ...]:
        """Words of the prompt."""
        return self.words[: self.prompt_length]

    @property
    def reasoning(self) -> tuple[Word, ...]:
        """Words that the teacher wrote."""
        return self.words[self.prompt_length :]


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
        sinks = set(place.sinks)
        keys = [p for p in range(place.prompt_length) if p not in sinks]
        anchors = [p for p in anchor_tokens(place) if p not in sinks]
        mass.append(float(row[anchors].sum()))
        expected.append(float(row[keys].sum()) * len(anchors) / len(keys))
    return rows.assign(anchor_mass=mass, anchor_mass_expected=expected)


def anchor_tokens(place: Places) -> list[int]:
    """Positions of the supporting findings and of the true regions' names in the prompt."""
    return sorted({*place.evidence, *place.anchor_mentions})


def note_with_attention(rows: pd.DataFrame, phase: int, wanted: str) -> str:
    """The wanted example, or the first one of which the phase's attention was kept.

    A trace without early window or refinement position has no row in that phase.

    Raises:
        InputError: no attention of that phase was kept.
    """
    kept = sorted(rows.loc[rows["phase"] == phase, "example"].unique())
    if not kept:
        raise InputError(
            f"no trace with attention rows has a query position of phase {phase}",
            "train the teacher longer: its reasoning cannot be parsed",
        )
    return wanted if wanted in kept else str(kept[0])


def attended_trace(
    rows: pd.DataFrame, phase: int, head: Head, place: Places, trace: Trace, tokenizer: Any
) -> AttendedTrace:
    """The stored row of `head` on one trace, split into words.

    Raises:
        InputError: no row of that head and example was kept, or it is of another length.
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
            "make the attention rows again: snakemake --cores 2 -R watch_heads",
        )
    weights = np.asarray(chosen["weights"].iloc[0], dtype=float)
    _place(place.example, len(weights), {place.example: place})
    kinds = kinds_of(place, trace)
    texts = [shown(decode(tokenizer, [token])) for token in place.tokens]
    words = tuple(
        Word(text, kind, float(weight))
        for text, kind, weight in zip(texts, kinds, weights, strict=True)
    )
    return AttendedTrace(place.example, head, words, place.prompt_length)


def shown(text: str) -> str:
    """A token as a figure writes it: blanks have no outline, and a sign stands for them."""
    return text.strip() or ("↵" if "\n" in text else "␣")


def kinds_of(place: Places, trace: Trace) -> list[str]:
    """The role of each token of note and reasoning."""
    kinds = [""] * len(place.tokens)
    marked: list[tuple[str, tuple[int, ...]]] = [
        ("anchor", place.anchor_mentions),
        ("evidence", place.evidence),
        ("cue", tuple(p for cue in place.cues for p in cue)),
    ]
    for mention in trace.mentions:
        tokens = tuple(range(mention.start, mention.end))
        if mention.kind == "region":
            marked.append(("anchor", tokens))
        elif mention.verdict != "open":
            marked.append((mention.verdict, tokens))
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

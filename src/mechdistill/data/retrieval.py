"""Labels by how well their names fit a note: BM25, with labels as the documents that are sought."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mechdistill.data.labels import LabelSpace

K1, B = 1.5, 0.75
"""BM25's usual saturation of word counts and share of length normalisation."""

_WORD = re.compile(r"\w+")


class LabelRetriever:
    """Ranks the labels of a space for a note.

    A label is what the label space says of it: its description, its region's name and findings.
    No text of a training document enters, so no label gains by being frequent.
    """

    def __init__(self, space: LabelSpace) -> None:
        self._codes = [label.code for label in space.labels]
        self._texts = [
            " ".join([label.description, region.name, *region.evidence])
            for label in space.labels
            for region in [space.region(label.region)]
        ]

    def ranked(self, note: str) -> list[str]:
        """All codes, best first; equal ones in the order of the space.

        Score(label, note) is the sum over the distinct words w of the note of
        idf(w) tf / (tf + K1 (1 - B + B length / mean length)),
        idf(w) = ln(1 + (L - n_w + 1/2) / (n_w + 1/2)), tf the count of w in the label's words, n_w
        the labels with w, L all labels. A word of the note counts once however often it is there.
        """
        words = sorted(set(words_of(note)))
        scores = self._index.get_scores(words) if words else np.zeros(len(self._codes))
        return [self._codes[index] for index in np.argsort(-scores, kind="stable").tolist()]

    @cached_property
    def _index(self) -> Any:
        from bm25s import BM25  # a quarter of a second: only who retrieves pays it

        index = BM25(k1=K1, b=B, method="lucene", dtype="float64")
        index.index([words_of(text) for text in self._texts], show_progress=False)
        return index


def words_of(text: str) -> list[str]:
    """Words in lower case.

    >>> words_of("Type-2 diabetes, with coma")
    ['type', '2', 'diabetes', 'with', 'coma']
    """
    return _WORD.findall(text.lower())


def recall(ranked: Sequence[str], wanted: Sequence[str], number: int) -> int:
    """How many of the wanted codes are among the first `number`."""
    return len(set(wanted).intersection(ranked[:number]))

"""The base student: a language model of notes and label names that has never seen reasoning.

It stands in for the hub checkpoint that a student of a large study starts from. One a seed, shared
by all methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch.nn.functional import cross_entropy

from mechdistill.data.labels import LabelSpace
from mechdistill.data.pretraining import base_texts
from mechdistill.data.world import WorldSettings
from mechdistill.distil.budget import Spent
from mechdistill.distil.engine import Part
from mechdistill.distil.history import Term
from mechdistill.models.batching import left_pad
from mechdistill.models.read_out import logits_where

MAX_POSITIONS = 512
"""Only recorded: rotary positions need no table, so any bound above prompt and trace does."""

TextsOfStep = Callable[[int], Sequence[Sequence[int]]]
"""Token ids of the texts of a step: a function of the step's number alone."""


def stream(
    space: LabelSpace, settings: WorldSettings, tokenizer: Any, *, batch_size: int, seed: int
) -> TextsOfStep:
    """Fresh texts at every step: notes of training combinations, and glossary entries."""

    def texts(step: int) -> list[list[int]]:
        rng = np.random.default_rng([settings.seed, seed, step])
        drawn = base_texts(space, settings, batch_size, rng)
        return [tokenizer(text).input_ids for text in drawn]

    return texts


class LanguageModelling:
    """Next-token loss on every token of a stream of texts.

    Args:
        model: trained in place.
        texts: of each step.
        pad_id: of the tokenizer.
    """

    def __init__(self, model: Any, texts: TextsOfStep, pad_id: int) -> None:
        self._model, self._texts, self._pad_id = model, texts, pad_id

    def begin(self) -> Spent:
        """Nothing to find."""
        return Spent()

    def step(self, number: int) -> tuple[list[Part], Spent]:
        """Mean over all tokens of the step's texts but the first of each."""
        texts = self._texts(number)
        batch = left_pad(texts, self._pad_id)
        # a token has a loss where the one before it is a token too, not padding
        has_loss = batch.mask[:, :-1].bool()
        ids, mask = batch.ids[:, :-1], batch.mask[:, :-1]

        def terms() -> dict[str, Term]:
            logits = logits_where(self._model, ids, has_loss, attention_mask=mask)
            nll = cross_entropy(logits.float(), batch.ids[:, 1:][has_loss])
            return {"nll": Term(nll, 1.0)}

        tokens = int(batch.mask.sum())
        return [terms], Spent(1, len(texts), tokens - len(texts), tokens)

    def state(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing to take up."""

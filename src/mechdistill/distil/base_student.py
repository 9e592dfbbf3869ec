"""The base student: a language model of notes and label names that has never seen reasoning.

It stands in for the hub checkpoint that a student of a large study starts from. One a seed, shared
by all methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mechdistill.data.labels import LabelSpace
from mechdistill.data.pretraining import base_texts
from mechdistill.data.world import WorldSettings
from mechdistill.distil.batch import collate
from mechdistill.distil.budget import Spent
from mechdistill.distil.cot_loss import (
    negative_log_likelihood,
    token_log_probabilities,
    weighted_mean,
)
from mechdistill.distil.forward import run
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.distil.trainer import Term

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

    def step(self, number: int) -> tuple[dict[str, Term], Spent]:
        """Mean over all tokens of the step's texts but the first of each."""
        texts = [_whole(tokens) for tokens in self._texts(number)]
        batch = collate(texts, self._pad_id)
        passed = run(self._model, batch)
        nll = negative_log_likelihood(token_log_probabilities(passed.logits), batch.labels)
        cost = Spent(1, len(texts), len(batch.labels), batch.tokens)
        return {"nll": Term(weighted_mean(nll, batch.weights), 1.0)}, cost

    def state(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing to take up."""


def _whole(tokens: Sequence[int]) -> TrainingSequence:
    predicting = tuple(range(len(tokens) - 1))
    return TrainingSequence(
        example="",
        tokens=tuple(tokens),
        predicting=predicting,
        weights=(1.0,) * len(predicting),
        teacher_rows=(-1,) * len(predicting),
    )

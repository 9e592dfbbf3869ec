"""The T5 simulator: question and reasoning as one text, the codes as the text to answer with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Self

from torch import Tensor

from mechdistill.evaluate.predictions import normalise
from mechdistill.evaluate.simulators import Lesson, Shown, SimulatorSettings, drawn
from mechdistill.models.text_to_text import TextToText

KIND = "t5"
BETWEEN = "; "
"""Between the codes of an answer."""
LONGEST_INPUT = 1024
"""Tokens of reasoning and question that are read."""
MARGIN = 2
"""Times as many tokens as the longest answer of training may be written."""


class T5Simulator:
    """A T5 that answers with codes.

    Args:
        codes: the label space; other answers are dropped.
        longest: tokens of an answer.
    """

    def __init__(
        self, model: TextToText, codes: Sequence[str], batch_size: int, longest: int = 0
    ) -> None:
        self._model, self._codes = model, frozenset(codes)
        self._batch_size, self._longest = batch_size, longest

    @classmethod
    def of(cls, tensors: dict[str, Tensor], about: dict[str, str]) -> Self:
        """From `contents`."""
        model = TextToText.of(tensors, about)
        sizes = (int(about[key]) for key in ("batch_size", "longest"))
        return cls(model, json.loads(about["codes"]), *sizes)

    def contents(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        tensors, about = self._model.contents()
        own = {
            "kind": KIND,
            "codes": json.dumps(sorted(self._codes)),
            "batch_size": str(self._batch_size),
            "longest": str(self._longest),
        }
        return tensors, about | own

    def answer(self, shown: Sequence[Shown]) -> list[tuple[str, ...]]:
        written = self._model.write(list(map(as_text, shown)), self._batch_size, self._longest)
        return [normalise(_codes(text), self._codes).labels for text in written]

    def fit(self, lessons: Sequence[Lesson], settings: SimulatorSettings) -> None:
        """Fine-tune on the lessons' codes, in their order."""
        answers = [BETWEEN.join(lesson.answer) for lesson in lessons]
        self._longest = MARGIN * max(len(self._model.answer_ids(answer)) for answer in answers)

        def batches() -> Iterator[tuple[list[str], list[str]]]:
            for batch in drawn(lessons, settings):
                yield [as_text(shown) for _, shown in batch], [answers[i] for i, _ in batch]

        self._model.fit(batches(), settings.steps, settings.learning_rate)


def as_text(shown: Shown) -> str:
    """The reasoning first: where a long text is cut, the question loses its end.

    >>> as_text(Shown("What is it?", None))
    'question: What is it?'
    """
    parts = (("reasoning", shown.reasoning), ("question", shown.question))
    return " ".join(f"{name}: {text}" for name, text in parts if text is not None)


def _codes(text: str) -> list[str]:
    return [part.strip() for part in text.split(BETWEEN.strip())]

"""The encoder simulator: frozen sentence embeddings and one multi-label head on them.

    score(l) = b_l + max_{s in question} w_l . e(s) + max_{s in reasoning} w_l . e(s)

over sentences s; a part that is hidden or has no sentence adds nothing. A label is answered where
its probability, the logistic function of the score, is above 1/2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mechdistill.evaluate.simulators import Lesson, Shown, SimulatorSettings, drawn
from mechdistill.models.batching import pad_right
from mechdistill.progress import track

KIND = "encoder"
FIRST_BIAS = -4.0
"""Labels are rare: a head that has seen nothing answers none."""
WEIGHT_DECAY = 0.01
_END = re.compile(r"(?<=[.!?])\s+(?=\S)|\n+")
_SPOKEN = re.compile(r"\w")


class Sentences(Protocol):
    """What is needed of the sentence encoder (`mechdistill.models.text_encoder.TextEncoder`)."""

    dimension: int

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit-length embeddings [n, dimension]."""
        ...


class EncoderSimulator:
    """See the head of this file.

    Args:
        head: from embeddings [d] to labels [L], its bias among them.
        codes: of the labels, in the order of the head's rows.
    """

    def __init__(self, encoder: Sentences, head: nn.Linear, codes: Sequence[str]) -> None:
        self._encoder, self._head, self._codes = encoder, head, tuple(codes)

    @classmethod
    def untrained(cls, encoder: Sentences, codes: Sequence[str], seed: int) -> Self:
        """With random weights."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = nn.Linear(encoder.dimension, len(codes))
        nn.init.constant_(head.bias, FIRST_BIAS)
        return cls(encoder, head, codes)

    @classmethod
    def of(cls, tensors: dict[str, Tensor], about: dict[str, str], encoder: Sentences) -> Self:
        """From `contents`."""
        codes = json.loads(about["codes"])
        head = nn.Linear(encoder.dimension, len(codes))
        head.load_state_dict(tensors)
        return cls(encoder, head, codes)

    def contents(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        return dict(self._head.state_dict()), {"kind": KIND, "codes": json.dumps(self._codes)}

    def answer(self, shown: Sequence[Shown]) -> list[tuple[str, ...]]:
        if not shown:
            return []
        with torch.no_grad():
            scores = self.scores(shown)
        order = torch.argsort(-scores, dim=-1, stable=True)
        return [
            tuple(self._codes[i] for i in row.tolist() if own[i] > 0)
            for row, own in zip(order, scores, strict=True)
        ]

    def scores(self, shown: Sequence[Shown]) -> Tensor:
        """Scores [n, L] of all labels, with gradients."""
        return (
            self._head.bias
            + self._strongest([part.question for part in shown])
            + self._strongest([part.reasoning for part in shown])
        )

    def fit(self, lessons: Sequence[Lesson], settings: SimulatorSettings) -> None:
        """Train the head: binary cross-entropy, summed over labels, AdamW at a constant rate."""
        column = {code: i for i, code in enumerate(self._codes)}
        truth = torch.zeros(len(lessons), len(self._codes))
        for row, lesson in enumerate(lessons):
            truth[row, [column[code] for code in lesson.answer]] = 1.0
        optimiser = torch.optim.AdamW(
            self._head.parameters(), lr=settings.learning_rate, weight_decay=WEIGHT_DECAY
        )
        # all at once: the encoder puts texts of like length into a batch, and keeps what it read
        texts = [text for lesson in lessons for text in lesson[:2]]
        self._encoder.encode([sentence for text in texts for sentence in sentences(text)])
        for batch in track(drawn(lessons, settings), "simulator step", settings.steps):
            rows = [number for number, _ in batch]
            loss = nn.functional.binary_cross_entropy_with_logits(
                self.scores([shown for _, shown in batch]), truth[rows], reduction="sum"
            )
            optimiser.zero_grad()
            (loss / len(batch)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    def _strongest(self, texts: Sequence[str | None]) -> Tensor:
        """max_s w_l . e(s) over the sentences of each text, [n, L]; 0 for one without any."""
        cut = [sentences(text or "") for text in texts]
        distinct = list(dict.fromkeys(sentence for own in cut for sentence in own))
        if not distinct:
            return torch.zeros(len(texts), len(self._codes))
        place = {sentence: i for i, sentence in enumerate(distinct)}
        embedded = torch.from_numpy(np.asarray(self._encoder.encode(distinct), dtype=np.float32))
        products = embedded @ self._head.weight.T
        rows = pad_right([[place[sentence] for sentence in own] for own in cut], -1)
        there = (rows >= 0)[..., None]
        each = products[rows.clamp(min=0)].masked_fill(~there, -torch.inf)
        return torch.where(there.any(1), each.amax(1), 0.0)


def sentences(text: str) -> list[str]:
    """The sentences of a text that hold a letter or a digit.

    >>> sentences("Overview: #1 gout . Review: I50.21 .")
    ['Overview: #1 gout .', 'Review: I50.21 .']
    """
    parts: list[Any] = [part.strip() for part in _END.split(text)]
    return [part for part in parts if _SPOKEN.search(part)]

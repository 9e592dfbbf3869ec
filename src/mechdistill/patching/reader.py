"""What is read off the reasoning written on the patching notes, by phase.

Phase 1: Focus, and the true regions that the early words name. Phase 2: Confusion, and the
near-misses that the review keeps. Each of the paper's measures has one beside it that needs no text
encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace, read_label_space
from mechdistill.data.prompts import ANSWER, REVIEW
from mechdistill.data.tokenizer import load_tokenizer, stop_ids
from mechdistill.evaluate.anchors import TextAnchors, text_anchors
from mechdistill.evaluate.confusion import confusion
from mechdistill.evaluate.focus import focus
from mechdistill.models.text_encoder import TextEncoder
from mechdistill.patching.decisions import near_miss_rate, region_recall
from mechdistill.traces.parse import Trace, parse_trace

Score = Callable[[Sequence[Trace], Sequence[Trace]], NDArray[np.float64]]
"""Traces, and those whose windows count where a trace has none of its own -> metric of each."""


@dataclass(frozen=True)
class Reader:
    """Parses and scores what a model wrote.

    Args:
        examples: by id.
        anchors: by id of the example.
        early_tokens: width of the early window.
    """

    examples: Mapping[str, Example]
    space: LabelSpace
    tokenizer: PreTrainedTokenizerFast
    anchors: Mapping[str, TextAnchors]
    encoder: TextEncoder
    early_tokens: int

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        space: LabelSpace,
        tokenizer: PreTrainedTokenizerFast,
        encoder: TextEncoder,
        early_tokens: int,
    ) -> Reader:
        """For these examples, whose anchors are embedded."""
        by_id = {example.example: example for example in examples}
        anchors = text_anchors(examples, space, encoder)
        return cls(by_id, space, tokenizer, anchors, encoder, early_tokens)

    @classmethod
    def from_files(
        cls,
        examples: Sequence[Example],
        label_space: str | Path,
        tokenizer: str | Path,
        text_encoder: Mapping[str, Any],
        early_tokens: int,
    ) -> Reader:
        """For these examples, with the encoder that the study names.

        Raises:
            InputError: a file is missing or damaged, or the encoder is not the study's.
        """
        return cls.of(
            examples,
            read_label_space(label_space),
            load_tokenizer(tokenizer),
            TextEncoder.packaged(**text_encoder),
            early_tokens,
        )

    def parse(self, example: str, tokens: Sequence[int]) -> Trace:
        """The trace of generated ids."""
        of = self.examples[example]
        return parse_trace(of, tokens, self.tokenizer, self.space, self.early_tokens)

    def scores(self, phase: int) -> dict[str, Score]:
        """The metrics of a phase, the paper's first."""
        text = self.anchors, self.tokenizer, self.encoder
        if phase == 1:
            return {
                "focus": lambda traces, donors: focus(traces, *text),
                "region_recall": lambda traces, donors: region_recall(traces, self.examples),
            }
        return {
            "confusion": lambda traces, donors: confusion(traces, *text, donors),
            "near_miss_rate": lambda traces, donors: near_miss_rate(traces, self.examples),
        }

    def stops(self, phase: int) -> frozenset[int]:
        """Tokens behind which nothing of a phase's window follows.

        The early window ends before the review, the late one before the answer list.
        """
        return stop_ids(self.tokenizer, [ANSWER, REVIEW] if phase == 1 else [ANSWER])

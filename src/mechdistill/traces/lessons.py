"""What a checkpoint is taught: fresh notes with reference traces, and where in them it decides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerFast

from mechdistill.data.candidates import CandidateLists, relisted
from mechdistill.data.examples import example_of
from mechdistill.data.frame import Frame
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import encode_prompt, encode_trace
from mechdistill.data.world import WorldSettings, draw_case
from mechdistill.models.fine_tuning import Lesson
from mechdistill.traces.parse import parse_trace

DECISIONS = ("region", "within")
"""Events at which a trace decides; what follows copies the choice or the list."""


def draw_lessons(
    space: LabelSpace,
    settings: WorldSettings,
    tokenizer: PreTrainedTokenizerFast,
    frame: Frame,
    lists: Sequence[CandidateLists],
    decision_weight: float,
    count: int,
    rng: np.random.Generator,
) -> list[Lesson]:
    """Fresh training notes in their frame, with their reference traces.

    Args:
        lists: kinds of candidate lists, one drawn for each note; none leaves those of the world.
        decision_weight: of the loss at tokens that decide; all others weigh 1. Of a hundred tokens
            of a trace two decide.
    """
    lessons = []
    for number in range(count):
        case = draw_case(space, settings, "training", rng)
        drawn = example_of(case, f"lesson-{number}", "training", frame)
        example = relisted(drawn, lists, rng)
        ids = encode_trace(tokenizer, example.reference, example.prompt)
        prompt = encode_prompt(tokenizer, example.prompt)
        parsed = parse_trace(example, ids, tokenizer, space, len(ids))
        weights = [1.0] * len(ids)
        for event in parsed.events:
            if event.kind in DECISIONS:
                weights[event.query + 1 - len(prompt)] = decision_weight
        lessons.append(Lesson(prompt, ids, weights))
    return lessons

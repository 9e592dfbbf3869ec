"""What the simulator answers from each model's reasoning (Eq. 8)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.units import cut, lexicon
from mechdistill.evaluate.example_scores import reasoning
from mechdistill.evaluate.las_scores import VIEWS
from mechdistill.evaluate.simulators import Lesson, Shown, Simulator
from mechdistill.traces.parse import Trace


def rationale(
    trace: Trace, tokenizer: PreTrainedTokenizerFast, space: LabelSpace, strip_labels: bool
) -> str:
    """The reasoning of a trace as the simulator sees it, without the answer list.

    Args:
        strip_labels: takes out every label, its text or its code: a reasoning that names its
            labels would give the answer away.
    """
    text = reasoning(trace, tokenizer)
    if strip_labels:
        for unit in reversed(cut(text, lexicon(tokenizer, space))):
            if unit.kind == "label":
                text = f"{text[: unit.start]} {text[unit.end :]}"
    return re.sub(r"\s+", " ", text).strip()


def lessons(
    examples: Mapping[str, Example],
    traces: Sequence[Trace],
    tokenizer: PreTrainedTokenizerFast,
    space: LabelSpace,
    strip_labels: bool,
) -> list[Lesson]:
    """Question, the teacher's reasoning and the gold codes of each trace that says something."""
    said = [(trace, rationale(trace, tokenizer, space, strip_labels)) for trace in traces]
    return [
        Lesson(examples[trace.example].prompt, text, examples[trace.example].gold)
        for trace, text in said
        if text
    ]


def simulate(
    simulator: Simulator,
    examples: Mapping[str, Example],
    rationales: Mapping[tuple[str, str, int], Mapping[str, str]],
) -> pd.DataFrame:
    """What the simulator answers with each model's reasoning at hand.

    Args:
        examples: by id.
        rationales: text by example id, by model, method and seed.

    Returns:
        rows (model, method, seed, example, gold, both, question, reasoning, reasoned): codes by
        what is seen; `reasoned` is false where the reasoning has no words, as that of a model that
        thinks in implicit positions.
    """
    seen = [
        (model, example, views)
        for model, texts in rationales.items()
        for example, text in texts.items()
        for views in [_views(examples[example].prompt, text)]
    ]
    distinct = list(dict.fromkeys(shown for _, _, views in seen for shown in views))
    answers = dict(zip(distinct, simulator.answer(distinct), strict=True))
    rows = [
        (
            *model,
            example,
            list(examples[example].gold),
            *(list(answers[shown]) for shown in views),
            bool(views[2].reasoning),
        )
        for model, example, views in seen
    ]
    columns = ["model", "method", "seed", "example", "gold", *VIEWS, "reasoned"]
    return pd.DataFrame(rows, columns=columns)


def _views(question: str, text: str) -> tuple[Shown, Shown, Shown]:
    return Shown(question, text), Shown(question, None), Shown(None, text)

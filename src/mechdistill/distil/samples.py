"""Several reasonings of the teacher on each note: sampled ones beside the greedy one.

Draw 0 is the greedy trace that every method trains on; the sampled ones are draws 1, 2, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from mechdistill.artifacts import read_table, write_table
from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import encode_prompt
from mechdistill.distil.sequences import TrainingSequence, whole_trace
from mechdistill.models.generate import sampled
from mechdistill.traces.parse import Trace, parse_trace
from mechdistill.traces.store import read_traces

Draw = tuple[int, Trace]


def draw_traces(
    model: Any,
    examples: Sequence[Example],
    tokenizer: Any,
    space: LabelSpace,
    *,
    draws: int,
    temperature: float,
    seed: int,
    early_tokens: int,
    max_new_tokens: int,
    batch_size: int,
) -> list[Draw]:
    """Parsed traces of all examples, draw by draw."""
    prompts = [encode_prompt(tokenizer, example.prompt) for example in examples]
    found: list[Draw] = []
    for draw in range(1, draws + 1):
        texts = sampled(
            model,
            prompts,
            temperature=temperature,
            seed=seed + draw,
            max_new_tokens=max_new_tokens,
            eos_id=tokenizer.eos_token_id,
            pad_id=tokenizer.pad_token_id,
            batch_size=batch_size,
            what=f"sampled trace {draw} of {draws}",
        )
        found += [
            (draw, parse_trace(example, ids, tokenizer, space, early_tokens))
            for example, ids in zip(examples, texts, strict=True)
        ]
    return found


def write_samples(path: str | Path, samples: Sequence[Draw]) -> None:
    """One row a trace: its columns, and `draw`."""
    write_table(path, pd.DataFrame([{"draw": draw, **asdict(trace)} for draw, trace in samples]))


def read_samples(path: str | Path) -> list[Draw]:
    """What `write_samples` wrote.

    Raises:
        InputError: the file is missing, damaged or no table of samples.
    """
    draws = read_table(path, ["draw"])["draw"]
    return list(zip((int(draw) for draw in draws), read_traces(path), strict=True))


def sample_name(example: str, draw: int) -> str:
    """What a sampled trace is called where an example's name stands: `training-00003/2`."""
    return f"{example}/{draw}" if draw else example


def whole_sample(draw: int, trace: Trace) -> TrainingSequence:
    """The whole trace under the name of its draw."""
    return replace(whole_trace(trace), example=sample_name(trace.example, draw))

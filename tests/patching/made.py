"""Traces on random tokens."""

from __future__ import annotations

import torch

from mechdistill.traces.parse import Event, RefinePosition, Trace

VOCABULARY = 61
LAYERS, HEADS = 3, 4


def random_tokens(count: int, seed: int) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(3, VOCABULARY, (count,), generator=generator).tolist())


def event(kind: str, query: int, target: int, foils: tuple[int, ...], segment="reasoning") -> Event:
    return Event(kind, segment, query, target, foils, "", (), 0)


def make_trace(
    name: str, prompt: int, length: int, events=(), refine=(), early=4, seed: int = 0
) -> Trace:
    return Trace(
        example=name,
        split="patching",
        tokens=random_tokens(prompt + length, seed),
        prompt_length=prompt,
        text="",
        status="ok",
        answer=(),
        early=tuple(range(prompt - 1, prompt - 1 + early)),
        late_start=prompt + early,
        reasoning_end=prompt + length - 2,
        mentions=(),
        events=tuple(events),
        refine=tuple(RefinePosition(q, 3, 4, 0, (q - 2,), (q - 1,)) for q in refine),
    )

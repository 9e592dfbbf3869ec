"""The pools of a model from its own scores, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.heads.measure import margin_deviation, measure_heads
from mechdistill.heads.pools import Pools, choose_pools
from mechdistill.heads.ranking import score_heads
from mechdistill.traces.parse import Trace


def find_pools(
    model: Any,
    traces: Sequence[Trace],
    examples: Iterable[Example],
    space: LabelSpace,
    tokenizer: Any,
    *,
    name: str,
    size: int,
    temperature: float,
    minimum_keys: int,
    batch_size: int,
) -> Pools:
    """Measure the heads of a model and choose its pools.

    For a student at its start (the pools that its training takes) and after training (heads found
    anew: heads that were trained to look right are no evidence). Arguments as
    `mechdistill.heads.measure.measure_heads` and `mechdistill.heads.pools.choose_pools`.
    """
    measured = measure_heads(
        model,
        traces,
        examples,
        space,
        tokenizer,
        name=name,
        minimum_keys=minimum_keys,
        batch_size=batch_size,
    )
    scores = score_heads(measured.values, resamples=0, seed=0)
    deviation = margin_deviation(measured.margins)
    return choose_pools(scores, deviation, size=size, temperature=temperature)

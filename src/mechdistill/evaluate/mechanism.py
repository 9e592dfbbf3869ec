"""Sharp, Align, Loop, Help of a model (Table 1), on the heads it was trained on and found anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.heads.find import find_pools
from mechdistill.heads.pools import Pools
from mechdistill.heads.readout import read_mechanisms
from mechdistill.traces.parse import Trace


@dataclass(frozen=True)
class PoolSettings:
    """How pools are found; see `mechdistill.heads.find.find_pools`."""

    size: int
    temperature: float
    minimum_keys: int
    batch_size: int


def mechanism_scores(
    model: Any,
    traces: Sequence[Trace],
    ranking_traces: Sequence[Trace],
    examples: Sequence[Example],
    space: LabelSpace,
    tokenizer: PreTrainedTokenizerFast,
    pools: Pools,
    settings: PoolSettings,
) -> pd.DataFrame:
    """Rows (example, metric, value) on the teacher's traces.

    `sharp`, `align`, ... are read on the given pools, those that training used; `sharp_found`, ...
    on pools found anew in the model as it is: heads trained to look right are no evidence by
    themselves.

    Args:
        traces: the teacher's, of the examples to score.
        ranking_traces: the teacher's, of the examples that heads are ranked on.
        examples: those of both.
    """
    found = find_pools(
        model,
        ranking_traces,
        examples,
        space,
        tokenizer,
        name="found",
        size=settings.size,
        temperature=settings.temperature,
        minimum_keys=settings.minimum_keys,
        batch_size=settings.batch_size,
    )
    given, anew = (
        read_mechanisms(
            model,
            traces,
            examples,
            space,
            tokenizer,
            each,
            minimum_keys=settings.minimum_keys,
            batch_size=settings.batch_size,
        )
        for each in (pools, found)
    )
    return pd.concat([given, anew.assign(metric=anew["metric"] + "_found")], ignore_index=True)

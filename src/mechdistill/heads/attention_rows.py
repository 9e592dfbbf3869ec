"""Where the heads look: attention rows of single examples (Figure 4, right; the worked example)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.heads.places import all_places
from mechdistill.heads.reading import Reading, read_all
from mechdistill.traces.parse import Trace


def attention_rows(
    model: Any,
    traces: Sequence[Trace],
    examples: Iterable[Example],
    space: LabelSpace,
    tokenizer: Any,
    *,
    name: str,
    batch_size: int,
) -> pd.DataFrame:
    """Mean attention of every head from each phase's query positions to every token.

    Args:
        model: attached to the tap, in evaluation mode.
        traces: with tokens of `tokenizer`.
        examples: at least those that the traces belong to.
        space: the label space.
        tokenizer: of the model.
        name: written into the column `model`.
        batch_size: traces a forward pass.

    Returns:
        model, phase, layer, head, example, weights: a list over all tokens of prompt and trace,
        0 on tokens that come after every query. No row where the example has no query position.
    """
    places = all_places(traces, examples, space, tokenizer)
    rows = [row for reading in read_all(model, places, batch_size) for row in _rows(reading)]
    columns = ["phase", "layer", "head", "example", "weights"]
    frame = pd.DataFrame(rows, columns=columns)
    frame.insert(0, "model", name)
    return frame.sort_values(["phase", "layer", "head", "example"], ignore_index=True)


def _rows(reading: Reading) -> Iterable[tuple[int, int, int, str, list[float]]]:
    for layer in reading.layers:
        for phase, rows, at in (
            (1, reading.early_rows(layer)[0], reading.early),
            (2, reading.refine_rows(layer), reading.refine),
        ):
            used = (at >= 0).to(rows.dtype)
            means = (rows * used[:, None, :, None]).sum(2)
            for index, places in enumerate(reading.places):
                if not used[index].any():
                    continue
                start = int(reading.batch.offset[index])
                for head, weights in enumerate(means[index, :, start:] / used[index].sum()):
                    yield phase, layer, head, places.example, weights.tolist()

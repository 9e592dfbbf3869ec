"""Long tables with one row a head and example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from torch import Tensor


def head_rows(values: Tensor, examples: Sequence[str], **constant: str | int) -> pd.DataFrame:
    """Rows of one quantity; what is NaN gets no row.

    Args:
        values: [examples, L, H].
        examples: their names, in order.
        constant: further columns, the same in every row.

    Returns:
        The constant columns, layer, head, example, value, sorted by example, layer and head.
    """
    example, layer, head = np.indices(values.shape).reshape(3, -1)
    frame = pd.DataFrame(
        {
            "layer": layer,
            "head": head,
            "example": np.asarray(examples, dtype=object)[example],
            "value": values.double().cpu().numpy().ravel(),
        }
    )
    for place, (column, value) in enumerate(constant.items()):
        frame.insert(place, column, value)
    return frame.dropna(subset="value").sort_values(["example", "layer", "head"], kind="stable")

"""Agreement of heads before and after, against ranks counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from mechdistill.heads.change import head_agreement


def measured(values: dict[tuple[int, int], list[float]]) -> pd.DataFrame:
    rows = [
        (1, "coarse", "unembed", "out", layer, head, f"e{i}", value)
        for (layer, head), own in values.items()
        for i, value in enumerate(own)
    ]
    columns = ["phase", "score", "anchor", "sinks", "layer", "head", "example", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_correlation_is_that_of_the_ranks_of_the_means() -> None:
    before = measured({(0, 0): [1.0, 3.0], (0, 1): [5.0], (1, 0): [3.0], (1, 1): [9.0]})
    after = measured({(0, 0): [7.0], (0, 1): [1.0, 0.0], (1, 0): [8.0], (1, 1): [9.0]})
    # means: 2, 5, 3, 9 -> ranks 1, 3, 2, 4; 7, .5, 8, 9 -> ranks 2, 1, 3, 4
    squares = (1 - 2) ** 2 + (3 - 1) ** 2 + (2 - 3) ** 2 + 0
    [row] = head_agreement(before, after).to_dict("records")
    assert (row["phase"], row["score"], row["heads"]) == (1, "coarse", 4)
    assert row["spearman"] == pytest.approx(1 - 6 * squares / (4 * 15))


def test_heads_that_one_of_the_models_lacks_are_left_out() -> None:
    before = measured({(0, i): [float(i)] for i in range(4)})
    after = measured({(0, i): [float(-i)] for i in range(1, 4)})
    [row] = head_agreement(before, after).to_dict("records")
    assert (row["heads"], row["spearman"]) == (3, -1.0)


def test_nothing_is_said_of_too_few_heads_or_of_equal_scores() -> None:
    few = measured({(0, 0): [1.0], (0, 1): [2.0]})
    equal = measured({(0, i): [1.0] for i in range(5)})
    assert head_agreement(few, few).empty
    assert head_agreement(equal, equal).empty

from __future__ import annotations

import numpy as np

from mechdistill.patching.conditions import Condition, single_heads
from mechdistill.patching.effects import margin_table, single_head_table
from mechdistill.patching.margin_sweep import EventEffects

ONE, TWO = frozenset([(0, 0)]), frozenset([(0, 0), (1, 0)])


def effects():
    """Patched values are 100 event + 10 site + direction + condition / 10."""
    grid = np.add.outer(np.add.outer([0.0, 10.0], [0.0, 1.0]), [0.0, 0.1]).astype(np.float32)
    return [
        EventEffects("a", i, metric, 1.0 + i, -1.0, 100 * i + grid)
        for i, metric in enumerate(["margin", "margin", "margin_answer"])
    ]


def test_single_heads_have_a_row_an_event_site_and_direction():
    table = single_head_table(effects(), single_heads([(0, 0), (1, 0)]), 2, "K2")
    assert len(table) == 3 * 2 * 2 * 2
    row = table.query("event == 1 and site == 'output' and direction == 'noise' and layer == 1")
    assert row[["head", "metric", "clean"]].values.tolist() == [[0, "margin", 2.0]]
    assert np.isclose(row["patched"], 111.1).all()


def test_margins_are_means_over_the_events_of_a_metric():
    planned = [
        Condition("top", 1, 0, ONE),
        Condition("all", 2, 0, TWO),
        Condition("random", 1, 5, ONE),
    ]
    table = margin_table(effects(), planned, [ONE, TWO], 2, "K2")
    assert len(table) == 2 * 2 * 2 * 3
    row = table.query(
        "ranking == 'random' and metric == 'margin' and site == 'output' and direction == 'noise'"
    )
    assert row[["draw", "bin", "clean", "corrupted"]].values.tolist() == [[5, 1, 1.5, -1.0]]
    assert np.isclose(row["patched"], 61.0).all()
    row = table.query("ranking == 'all' and metric == 'margin_answer' and site == 'pattern'")
    assert np.isclose(row["patched"], [200.1, 201.1]).all()

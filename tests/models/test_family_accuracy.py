"""The tap in both number formats, by the benchmark that fills the table of docs/families.md."""

from __future__ import annotations

import pytest

from benchmarks.family_accuracy import QUANTITIES, differences
from tests.models.tiny import MAKERS

STEP = 2**-8
"""Relative rounding of bfloat16."""


@pytest.mark.parametrize("family", list(MAKERS))
def test_tap_is_as_near_as_eager_attention(family):
    """fp32 to 1e-5. In bf16 both round at every product; the tap may be twice as far from the fp32
    run as eager attention is, and a rounding step more: the two round in another order."""
    found = differences(family)
    for name in QUANTITIES:
        assert found["fp32"][name] < 1e-5, name
        assert found["bf16"][name] < 2 * found["bf16 eager"][name] + STEP, name
    assert max(found["bf16"].values()) > STEP / 8  # the formats do differ

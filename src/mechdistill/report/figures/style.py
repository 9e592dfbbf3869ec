"""What colours, lines and hatches stand for in the report's figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from mechdistill.figure_style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION

Look = tuple[str, Any, str]
"""Colour, line style, marker."""

METHODS: dict[str, Look] = {
    "teacher": (BLACK, (0, (5, 2)), ""),
    "mech": (BLUE, "-", "o"),
    "p1_only": (GREEN, "-", "s"),
    "p2_only": (PURPLE, "-", "^"),
    "vanilla": (VERMILION, "-", "D"),
    "vanilla_positions": (ORANGE, "-", "v"),
}
"""Method -> colour, line style, marker: never told apart by colour alone. Others: `looks`."""

FREE = tuple(
    (colour, dashes, marker)
    for dashes, (marker, colour) in product(
        ("-", "--", ":", "-."),
        zip("PX*p<>hd", (BLUE, VERMILION, GREEN, PURPLE, ORANGE) * 2, strict=False),
    )
)
"""Looks that no method of `METHODS` has."""


def looks(methods: Sequence[str]) -> dict[str, Look]:
    """How each method is drawn: no two alike, up to 32 beside those with a look of their own."""
    others = [method for method in methods if method not in METHODS]
    free = {method: FREE[place % len(FREE)] for place, method in enumerate(others)}
    return {method: METHODS.get(method) or free[method] for method in methods}


DEPTHS = ((BLUE, "first third of layers"), (ORANGE, "middle"), (PURPLE, "last"))


def depth_group(layer: int, layers: int) -> int:
    """0, 1 or 2: the third of the depth in which a layer (from 0) lies."""
    return min(2, 3 * layer // layers)

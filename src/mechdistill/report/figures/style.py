"""What colours, lines and hatches stand for in the report's figures."""

from __future__ import annotations

from mechdistill.figure_style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION

METHODS = {
    "teacher": (BLACK, (0, (5, 2)), ""),
    "mech": (BLUE, "-", "o"),
    "p1_only": (GREEN, "-", "s"),
    "p2_only": (PURPLE, "-", "^"),
    "vanilla": (VERMILION, "-", "D"),
    "vanilla_positions": (ORANGE, "-", "v"),
}
"""Method -> colour, line style, marker: never told apart by colour alone."""

DEPTHS = ((BLUE, "first third of layers"), (ORANGE, "middle"), (PURPLE, "last"))


def depth_group(layer: int, layers: int) -> int:
    """0, 1 or 2: the third of the depth in which a layer (from 0) lies."""
    return min(2, 3 * layer // layers)

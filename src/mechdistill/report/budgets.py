"""What each training used, and which runs are out of line with plain distillation.

Times differ from run to run, so they have a table of their own: the other is the same, byte for
byte, wherever the study runs again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from mechdistill.significance.plan import PLAIN

AMOUNTS = {
    "parameters": "parameters",
    "steps": "steps",
    "sequences": "sequences",
    "target_tokens": "tokens with a loss",
    "forward_tokens": "tokens read",
    "teacher_generations": "texts of the teacher",
    "settings_tried": "settings tried",
}
"""What methods are compared at equal amounts of; for people."""
TIMES = ("wall_seconds", "peak_memory_mib")
TOLERANCE = 0.02
"""Share by which an amount may differ: batches are not all of one length."""

Budgets = Mapping[tuple[str, int], Mapping[str, Any]]
"""By method and seed, as budget.json holds them."""


def budget_table(budgets: Budgets) -> pd.DataFrame:
    """One row a run: method, seed, the amounts, their ratios to the reference, out_of_line.

    The reference is plain distillation of the same seed; without it, the first method of that seed.
    `out_of_line` names every amount that differs by more than `TOLERANCE`, and by how much.
    """
    rows = []
    for (method, seed), budget in budgets.items():
        other = reference(budgets, seed)
        row: dict[str, Any] = {"method": method, "seed": seed, "reference": other}
        row |= {amount: budget.get(amount) for amount in AMOUNTS}
        row |= {f"{amount}_ratio": ratio for amount, ratio in ratios(budgets, method, seed).items()}
        row["out_of_line"] = "; ".join(out_of_line(ratios(budgets, method, seed)))
        rows.append(row)
    return pd.DataFrame(rows)


def time_table(budgets: Budgets) -> pd.DataFrame:
    """One row a run: method, seed, wall seconds of the training, peak memory, ratio of the times.

    Times of runs beside which other work ran on the machine say little.
    """
    rows = []
    for (method, seed), budget in budgets.items():
        plain = budgets[reference(budgets, seed), seed]
        row = {"method": method, "seed": seed, **{time: budget.get(time) for time in TIMES}}
        row["wall_seconds_ratio"] = _ratio(budget, plain, "wall_seconds")
        rows.append(row)
    return pd.DataFrame(rows)


def reference(budgets: Budgets, seed: int) -> str:
    """The method that runs of a seed are held against."""
    there = [method for method, own in budgets if own == seed]
    return PLAIN if PLAIN in there else there[0]


def ratios(budgets: Budgets, method: str, seed: int) -> dict[str, float]:
    """Each amount over that of the reference, where both are known."""
    plain = budgets[reference(budgets, seed), seed]
    found = {amount: _ratio(budgets[method, seed], plain, amount) for amount in AMOUNTS}
    return {amount: ratio for amount, ratio in found.items() if ratio is not None}


def out_of_line(ratios: Mapping[str, float]) -> list[str]:
    """The amounts that differ, in words.

    >>> out_of_line({"steps": 1.0, "teacher_generations": 4.0})
    ['texts of the teacher x 4.00']
    """
    return [
        f"{AMOUNTS[amount]} x {ratio:.2f}"
        for amount, ratio in ratios.items()
        if abs(ratio - 1) > TOLERANCE
    ]


def _ratio(budget: Mapping[str, Any], plain: Mapping[str, Any], amount: str) -> float | None:
    if amount not in budget or amount not in plain:
        return None
    own, other = float(budget[amount]), float(plain[amount])
    if other == 0:
        return 1.0 if own == 0 else math.inf
    return own / other

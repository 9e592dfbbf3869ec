"""Causal recovery of students as rows of the page's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mechdistill.evaluate.causal_recovery import ALL_SEEDS
from mechdistill.report.formats import interval, plain, signed
from mechdistill.report.head_sets import largest_sets
from mechdistill.report.metrics import method_name


def recovery_rows(recovery: pd.DataFrame | None, pool_size: int) -> list[dict[str, Any]]:
    """A row a kind of decision and method, seeds together; none where it was not measured.

    Args:
        recovery: of `mechdistill.evaluate.causal_recovery.causal_recovery`.
        pool_size: of each kind, the largest sets of so many heads or fewer are shown (the smallest
            ones, where all are larger).
    """
    if recovery is None:
        return []
    rows = []
    together = recovery[recovery["seed"] == ALL_SEEDS]
    for (kind, segment), own in together.groupby(["kind", "segment"], sort=False):
        shown = largest_sets(own, pool_size)
        if shown.empty:
            shown = own[own["bin"] == own["bin"].min()]
        for row in shown.to_dict("records"):
            rows.append(
                {
                    **{"kind": kind, "segment": segment, "bin": row["bin"], "n": row["n"]},
                    "method": method_name(row["method"]),
                    "effect": plain(row["effect"]),
                    "teacher": plain(row["teacher_effect"]),
                    "recovery": plain(row["recovery"]),
                    "ends": interval(row["ci_low"], row["ci_high"]),
                    "gain": signed(row["gain"]),
                    "gain_ends": interval(row["gain_low"], row["gain_high"]),
                    "ratio": plain(row["ratio"]),
                    "ratio_ends": interval(row["ratio_low"], row["ratio_high"]),
                }
            )
    return rows


def trained_weights(budgets: Mapping[Any, Mapping[str, Any]]) -> str:
    """Formats of the weights that students were trained in, as their budgets record it."""
    return ", ".join(sorted({str(one["weights"]) for one in budgets.values() if "weights" in one}))

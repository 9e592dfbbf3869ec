"""Budgets, times and detectable differences of all members."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mechdistill.report.joined.places import Place, placed
from mechdistill.report.metrics import TABLE1, method_name
from mechdistill.significance.plan import PROPOSED

Frames = Mapping[Place, pd.DataFrame]


def joined_times(times: Frames) -> pd.DataFrame:
    """One row a member and method: seconds of a training, and their ratio to plain distillation.

    Args:
        times: of `mechdistill.report.budgets.time_table`, one row a run.
    """
    rows = placed(times).groupby(["data_set", "student", "member", "method"], sort=False)
    return rows.agg(
        n_seeds=("seed", "size"),
        wall_seconds=("wall_seconds", "mean"),
        ratio=("wall_seconds_ratio", "mean"),
        ratio_low=("wall_seconds_ratio", "min"),
        ratio_high=("wall_seconds_ratio", "max"),
        peak_memory_mib=("peak_memory_mib", "max"),
    ).reset_index()


def out_of_line_rows(budgets: pd.DataFrame) -> list[dict[str, str]]:
    """Runs whose budget differs from plain distillation, seeds of a method together.

    Args:
        budgets: joined `budget_table`s.
    """
    flagged = budgets[budgets["out_of_line"].fillna("") != ""]
    rows = []
    for (data_set, student, method), own in flagged.groupby(
        ["data_set", "student", "method"], sort=False
    ):
        flags = dict.fromkeys(flag for text in own["out_of_line"] for flag in text.split("; "))
        rows.append(
            {
                "place": f"{data_set}, {student}",
                "method": method_name(str(method)),
                "seeds": ", ".join(str(seed) for seed in own["seed"]),
                "flags": "; ".join(flags),
            }
        )
    return rows


def detectable_table(comparisons: Frames) -> pd.DataFrame:
    """The smallest difference from the best baseline that each member would have shown.

    Args:
        comparisons: of the significance stage.
    """
    keys = [metric.key for metric in TABLE1]
    marked = {
        place: frame[
            (frame["method"] == PROPOSED)
            & frame["is_best_baseline"].astype(bool)
            & frame["metric"].isin(keys)
        ]
        for place, frame in comparisons.items()
    }
    columns = ["metric", "method", "baseline", "detectable", "n_documents", "n_seeds"]
    return placed({place: frame[columns] for place, frame in marked.items()})

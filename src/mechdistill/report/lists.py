"""How many labels the notes list, and what longer lists do to the effect of the top heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.report.formats import MISSING, interval, percent, plain, signed
from mechdistill.report.verdicts import Estimate

DIRECTIONS = ("denoise", "noise")


def lists_in_words(examples: Sequence[Example], space: LabelSpace) -> str:
    """`10 candidates of 144 labels`, and how many true codes are listed if not all are."""
    sizes = sorted({len(example.candidates) for example in examples})
    number = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    gold = [code in example.candidates for example in examples for code in example.gold]
    text = f"{number} candidates of {len(space.labels)} labels"
    if all(gold):
        return text
    return f"{text}, {percent(100 * sum(gold) / len(gold))} of the true codes listed"


def over_random(
    lists: pd.DataFrame, number: str, phase: int, direction: str, pool_size: int
) -> Estimate:
    """Effect of the top heads' outputs less that of random heads, about as many as a pool has.

    Args:
        lists: of `mechdistill.patching.listed.summarise_lists`.

    Returns:
        in logits; of no units where nothing could be patched at this length.
    """
    row = _top(lists, number, phase, direction, pool_size)
    if row is None:
        return Estimate(float("nan"), float("nan"), float("nan"), 0, "logits")
    names = ("top_minus_random", "top_minus_random_low", "top_minus_random_high")
    effect, low, high = (float(row[name]) for name in names)
    return Estimate(effect, low, high, int(row["n"]), "logits")


def list_rows(lists: pd.DataFrame | None, pool_size: int) -> list[dict[str, Any]]:
    """Rows of the page's table, one a length and phase; none where lengths were not swept."""
    if lists is None:
        return []
    rows = []
    for number in dict.fromkeys(lists["number"]):
        first = lists[lists["number"] == number].iloc[0]
        about = [
            *(plain(float(first["listed"])), plain(float(first["recall"]))),
            *(plain(float(first["micro_f1"])), f"{first['eligible']} of {first['notes']}"),
        ]
        for phase in (1, 2):
            tops = [_top(lists, number, phase, direction, pool_size) for direction in DIRECTIONS]
            levels = size = MISSING
            if tops[0] is not None:
                levels = f"{plain(tops[0]['clean'])} / {plain(tops[0]['corrupted'])}"
                size = str(int(tops[0]["bin"]))
            effects = [cell for top in tops for cell in _effect(top)]
            rows.append(
                {
                    **{"number": number, "about": about, "phase": phase, "bin": size},
                    **{"levels": levels, "effects": effects},
                }
            )
    return rows


def _top(
    lists: pd.DataFrame, number: str, phase: int, direction: str, pool_size: int
) -> pd.Series | None:
    """The row of the top heads' outputs and the phase's own margin, or None."""
    rows = lists[
        (lists["number"] == number)
        & (lists["phase"] == phase)
        & (lists["n"] > 0)
        & (lists["metric"] == "margin")
        & (lists["site"] == "output")
        & (lists["direction"] == direction)
        & (lists["ranking"] == "top")
    ]
    if rows.empty:
        return None
    away = np.abs(rows["bin"].to_numpy(float) - pool_size)
    row: pd.Series = rows.iloc[int(away.argmin())]  # the smaller of two, since bins increase
    return row


def _effect(top: pd.Series | None) -> list[dict[str, str]]:
    """Share of the gap and effect beyond random heads."""
    if top is None:
        return [{"text": MISSING, "below": ""}] * 2
    share = {"text": percent(float(top["pct_gap"])), "below": ""}
    if share["text"] != MISSING:
        ends = (percent(float(top[f"pct_gap_{end}"])).removesuffix(" %") for end in ("low", "high"))
        share["below"] = f"[{', '.join(ends)}]"
    low, high = float(top["top_minus_random_low"]), float(top["top_minus_random_high"])
    return [
        share,
        {"text": signed(float(top["top_minus_random"])), "below": interval(low, high)},
    ]

"""From patched examples to effects with intervals.

The example is the unit: events and draws are averaged within it, the bootstrap draws examples.
Percentages are ratios of means over examples:

| | denoise | noise |
|---|---|---|
| `pct_gap` | (patched - corrupted) / gap | (clean - patched) / gap |
| `pct_paper`, Focus | (patched - corrupted) / gap | (clean - patched) / clean |
| `pct_paper`, Confusion | (corrupted - patched) / corrupted | (patched - clean) / clean |

with gap = clean - corrupted.

`pct_gap` is the share of the way between corrupted and clean; `pct_paper` are the formulas behind
the paper's figures, three of which divide by a level.

Both are null unless the interval of clean - corrupted, signed so that good is up, lies above 0: a
corruption that moves nothing leaves no way to go, one that improves the metric leaves a way that is
none of the claim's. `no_percentage` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mechdistill.heads.resampling import Floats, interval, plain_and_resampled, weighted_means
from mechdistill.patching.conditions import control_of
from mechdistill.patching.effects import CELL

VALUES = ["clean", "corrupted", "patched"]

BETTER = {"confusion": -1.0, "near_miss_rate": -1.0}
"""Sign of the metrics that fall when things go well; all others rise."""

UNMOVED, WRONG_WAY = "moves nothing", "moves the wrong way"
"""What a corruption does where there is no percentage: the interval of the signed gap includes 0,
or lies below it."""

PaperFormula = Callable[[float, float, float], tuple[float, float]]
PAPER: dict[tuple[str, str], PaperFormula] = {
    ("focus", "denoise"): lambda clean, corr, patched: (patched - corr, clean - corr),
    ("focus", "noise"): lambda clean, corr, patched: (clean - patched, clean),
    ("confusion", "denoise"): lambda clean, corr, patched: (corr - patched, corr),
    ("confusion", "noise"): lambda clean, corr, patched: (patched - clean, clean),
}
"""(metric, direction) -> numerator and denominator from mean clean, corrupted, patched values."""


def summarise(
    results: pd.DataFrame,
    planned: int,
    *,
    resamples: int,
    seed: int,
    condition: Sequence[str] = tuple(CELL),
) -> pd.DataFrame:
    """One row a condition and metric.

    Args:
        results: the columns of `condition`, draw, example, metric, clean, corrupted, patched, and
            for written runs window.
        planned: number of examples that were to be patched.
        resamples: of the bootstrap over examples.
        seed: of the bootstrap; all conditions on the same examples share their resamples.
        condition: columns that name a condition, direction among them.

    Returns:
        The columns of `condition`, metric, n, n_dropped, n_donor_window (examples with a run that
        has no window of its own and is read at its donor's), clean, corrupted, patched (means),
        difference
        (patched less the unpatched run that it started from) with ci_low, ci_high, effect (towards
        the claim: up when denoising restores, up when noising disrupts), no_percentage (see
        UNMOVED; empty where there is one), pct_gap with pct_gap_low, pct_gap_high, pct_paper, and
        for rankings top_minus_random (effect less that of the ranking's own random heads) with
        top_minus_random_low, top_minus_random_high.
    """
    keys = [*condition, "metric"]
    each = results.groupby([*keys, "example"], sort=True)[VALUES].mean().dropna()
    elsewhere = _read_at_donors(results, keys)
    cells = {
        key: Cell(list(rows.index.get_level_values("example")), rows.to_numpy(np.float64))
        for key, rows in each.groupby(level=keys, sort=True)
    }
    counts = {n: plain_and_resampled(n, resamples, seed) for n in {len(c) for c in cells.values()}}
    records = []
    for key, cell in cells.items():
        named = dict(zip(keys, key, strict=True))
        row = named | {"n": len(cell), "n_dropped": planned - len(cell)}
        row["n_donor_window"] = elsewhere.get(key, 0)
        row |= _effects(cell, counts[len(cell)], str(named["metric"]), str(named["direction"]))
        ranking = str(named.get("ranking", ""))
        if ranking.startswith("top"):
            control = {**named, "ranking": control_of(ranking, "random")}
            random = cells.get(tuple(control.values()))
            row |= _over_random(row, cell, random, resamples, seed)
        records.append(row)
    return pd.DataFrame.from_records(records)


def _read_at_donors(results: pd.DataFrame, keys: list[str]) -> dict[object, int]:
    """Examples of each condition with a run whose window is its donor's."""
    if "window" not in results:
        return {}
    given = results[(results["window"] == "donor") & (results["metric"] == "confusion")]
    counts: dict[object, int] = given.groupby(keys)["example"].nunique().to_dict()
    return counts


class Cell(NamedTuple):
    """Values [n, 3] of one condition: clean, corrupted and patched metric of each example."""

    examples: list[str]
    values: Floats

    def __len__(self) -> int:
        return len(self.examples)


def _effects(cell: Cell, counts: Floats, metric: str, direction: str) -> dict[str, float | str]:
    """Means, differences and percentages; counts [1 + resamples, n], the plain weighting first."""
    clean, corrupted, patched = weighted_means(cell.values, counts).T
    start = corrupted if direction == "denoise" else clean
    sign = BETTER.get(metric, 1.0)
    effect = sign * (patched - corrupted if direction == "denoise" else clean - patched)
    gap = sign * (clean - corrupted)
    row: dict[str, float | str] = dict(
        zip(VALUES, (clean[0], corrupted[0], patched[0]), strict=True)
    )
    row |= {"difference": patched[0] - start[0], "effect": effect[0]}
    row["ci_low"], row["ci_high"] = _bounds(patched - start)
    row |= dict.fromkeys(["pct_gap", "pct_gap_low", "pct_gap_high", "pct_paper"], np.nan)
    gap_low, gap_high = _bounds(gap)
    row["no_percentage"] = "" if gap_low > 0 else WRONG_WAY if gap_high < 0 else UNMOVED
    if gap_low > 0:
        # a resample may have no gap at all: it has no share to give
        fraction = 100 * np.divide(effect, gap, out=np.full_like(gap, np.nan), where=gap != 0)
        row["pct_gap"] = fraction[0]
        row["pct_gap_low"], row["pct_gap_high"] = _bounds(fraction)
        if (metric, direction) in PAPER:
            part, whole = PAPER[metric, direction](clean[0], corrupted[0], patched[0])
            row["pct_paper"] = 100 * part / whole if whole else np.nan
    return row


def _over_random(
    row: Mapping[str, object], cell: Cell, random: Cell | None, resamples: int, seed: int
) -> dict[str, float]:
    """Effect of a ranking less that of its random heads, over the examples that have both."""
    names = ["top_minus_random", "top_minus_random_low", "top_minus_random_high"]
    control = {} if random is None else dict(zip(random.examples, random.values[:, 2]))
    both = [i for i, example in enumerate(cell.examples) if example in control]
    if not both:
        return dict.fromkeys(names, np.nan)
    towards = BETTER.get(str(row["metric"]), 1.0) * (1 if row["direction"] == "denoise" else -1)
    apart = [cell.values[i, 2] - control[cell.examples[i]] for i in both]
    counts = plain_and_resampled(len(both), resamples, seed)
    samples = weighted_means(towards * np.array(apart)[:, None], counts)[:, 0]
    return dict(zip(names, (samples[0], *_bounds(samples)), strict=True))


def _bounds(samples: Floats) -> tuple[float, float]:
    """95 % percentile interval of the resamples; the first entry, the plain mean, is left out."""
    low, high = interval(samples[1:, None])
    return float(low[0]), float(high[0])

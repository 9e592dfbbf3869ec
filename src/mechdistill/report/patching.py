"""Effects of patching heads, one row a note.

Denoising puts the clean run's heads into the corrupted run: its effect is how far the metric
moves back towards clean. Noising is the reverse. Both are signed so that the claimed direction is
positive, for Confusion (which is better low) as well.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mechdistill.report.evidence import NotTested

TWIN = {1: "K1", 2: "K2"}
"""Phase -> the corruption that removes what the phase reads."""
PAPER_METRIC = {1: "focus", 2: "confusion"}
"""Phase -> the paper's measure on the generated reasoning."""
WRITTEN = {1: "region_recall", 2: "near_miss_rate"}
"""Phase -> what the generated reasoning decides, read without a text encoder: the share of true
regions named in the early words; the share of near-misses that the review keeps."""
BETTER = {"focus": 1, "margin": 1, "confusion": -1, "region_recall": 1, "near_miss_rate": -1}


def effects(
    frame: pd.DataFrame,
    phase: int,
    site: str,
    direction: str,
    metric: str,
    twin: str | None = None,
) -> pd.DataFrame:
    """Effect by note: index example, columns (ranking, bin); random draws are averaged.

    Raises:
        NotTested: no such condition was run.
    """
    chosen = _condition(frame, phase, site, direction, metric, twin)
    better = BETTER[metric]
    moved = (
        better * (chosen["patched"] - chosen["corrupted"])
        if direction == "denoise"
        else better * (chosen["clean"] - chosen["patched"])
    )
    return chosen.assign(effect=moved).pivot_table(
        index="example", columns=["ranking", "bin"], values="effect", aggfunc="mean"
    )


def gaps(
    frame: pd.DataFrame,
    phase: int,
    site: str,
    direction: str,
    metric: str,
    twin: str | None = None,
) -> pd.Series:
    """Clean minus corrupted by note, signed so that a corruption that works is positive."""
    chosen = _condition(frame, phase, site, direction, metric, twin)
    return (
        BETTER[metric] * (chosen["clean"] - chosen["corrupted"]).groupby(chosen["example"]).mean()
    )


def _condition(
    frame: pd.DataFrame, phase: int, site: str, direction: str, metric: str, twin: str | None
) -> pd.DataFrame:
    twin = twin or TWIN[phase]
    chosen = frame[
        (frame["phase"] == phase)
        & (frame["twin"] == twin)
        & (frame["site"] == site)
        & (frame["direction"] == direction)
        & (frame["metric"] == metric)
    ]
    if chosen.empty:
        raise NotTested(
            f"no {direction} run of phase {phase} on {twin} at the {site} site was measured by "
            f"{metric}"
        )
    return chosen.set_axis(range(len(chosen)))


def under(effect: pd.DataFrame, ranking: str) -> pd.DataFrame:
    """Effects of one ranking: index example, columns the numbers of heads, ascending.

    Raises:
        NotTested: the ranking was not patched.
    """
    if ranking not in effect.columns.get_level_values("ranking"):
        raise NotTested(f"heads ranked {ranking} were not patched")
    return pd.DataFrame(effect.xs(ranking, axis=1, level="ranking")).sort_index(axis=1)


def bins_of(effect: pd.DataFrame, ranking: str) -> list[int]:
    """The numbers of heads patched under a ranking, ascending."""
    return [int(k) for k in under(effect, ranking).columns.to_numpy(float)]


def nearest_bin(chosen: pd.DataFrame, size: int) -> int:
    """The number of heads nearest to `size` among the columns of `under`; the smaller of two."""
    bins = [int(k) for k in chosen.columns.to_numpy(float)]
    return min(bins, key=lambda k: (abs(k - size), k))


def trend(effect: pd.DataFrame, ranking: str) -> pd.Series:
    """Slope of the effect over log2(heads) by note: the growth with each doubling.

    Raises:
        NotTested: there is only one number of heads.
    """
    chosen = under(effect, ranking)
    if chosen.shape[1] < 2:
        raise NotTested("a trend needs at least two numbers of heads")
    x = np.log2(chosen.columns.to_numpy(float))
    away = x - x.mean()
    return pd.Series(chosen.to_numpy(float) @ away / (away @ away), index=chosen.index)


def mean_up_to(effect: pd.DataFrame, ranking: str, most: int) -> pd.Series:
    """Mean effect by note over the bins of at most `most` heads (the smallest bin in any case)."""
    chosen = under(effect, ranking)
    within = np.flatnonzero(chosen.columns.to_numpy(float) <= most)
    few = chosen.iloc[:, within if len(within) else [0]]
    return pd.Series(few.to_numpy(float).mean(axis=1), index=chosen.index)


def concentration(effect: pd.DataFrame, ranking: str) -> pd.Series:
    """Effect of the smallest bin above its share of the largest bin's effect, by note.

    Zero where effect is proportional to the number of heads; positive where few heads do most.
    """
    chosen = under(effect, ranking)
    few, many = chosen.columns[0], chosen.columns[-1]
    share = float(few) / float(many)
    return pd.Series(chosen[few] - share * chosen[many], index=chosen.index)

"""Do two halves of the examples rank the heads alike?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mechdistill.heads.ranking import VARIANT, examples_of, mean_scores
from mechdistill.heads.resampling import interval, spearman


def split_half_reliability(measurements: pd.DataFrame, *, splits: int, seed: int) -> pd.DataFrame:
    """Spearman correlation of the heads' mean scores between random halves of the examples.

    Args:
        measurements: see `mechdistill.heads.measure.measure_heads`.
        splits: number of random halvings.
        seed: of the halvings; all variants share them.

    Returns:
        VARIANT columns, spearman (mean over the halvings), ci_low and ci_high (2.5 and 97.5
        percentiles over the halvings) and n, the number of examples; null where a variant is
        the same for all heads.
    """
    count = len(examples_of(measurements))
    rng = np.random.default_rng(seed)
    first = np.zeros((splits, count))
    for row in first:
        row[rng.permutation(count)[: count // 2]] = 1
    halves = mean_scores(measurements, first), mean_scores(measurements, 1 - first)
    records = []
    for key in sorted(halves[0]):
        rho = spearman(halves[0][key], halves[1][key])
        low, high = interval(rho[:, None])
        defined = rho[np.isfinite(rho)]
        records.append(
            dict(zip(VARIANT, key, strict=True))
            | {
                "spearman": defined.mean() if len(defined) else np.nan,
                "ci_low": low[0],
                "ci_high": high[0],
                "n": count,
            }
        )
    return pd.DataFrame.from_records(records)

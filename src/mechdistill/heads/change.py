"""Whether two models that share an architecture have the same heads for a task."""

from __future__ import annotations

import pandas as pd
from scipy.stats import spearmanr

VARIANT = ["phase", "score", "anchor", "sinks"]
HEAD = ["layer", "head"]


def head_agreement(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of the heads' mean scores in two models, one row a score variant.

    Args:
        before, after: measurements of both models on the same traces, see
            `mechdistill.heads.measure.measure_heads`.

    Returns:
        phase, score, anchor, sinks, heads, spearman: variants that give fewer than three heads, or
        all heads alike, a score are left out.
    """
    means = [frame.groupby([*VARIANT, *HEAD])["value"].mean() for frame in (before, after)]
    both = pd.concat(means, axis=1, keys=("before", "after"), join="inner").dropna().reset_index()
    rows = [
        (*variant, len(own), float(spearmanr(own["before"], own["after"]).statistic))
        for variant, own in both.groupby(VARIANT)
        if len(own) >= 3 and own["before"].nunique() > 1 and own["after"].nunique() > 1
    ]
    return pd.DataFrame(rows, columns=[*VARIANT, "heads", "spearman"])

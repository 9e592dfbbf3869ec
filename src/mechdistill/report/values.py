"""The value of every measure of every method, with its interval over notes and seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mechdistill.report.resampling import Bootstrap
from mechdistill.significance.bootstrap import (
    Array,
    Statistics,
    draw,
    mean_of,
    point_scores,
    resampled_scores,
    summarise,
)
from mechdistill.significance.compare import Measure, Model

COLUMNS = (
    "method",
    "metric",
    "value",
    "ci_low",
    "ci_high",
    "n_documents",
    "n_seeds",
    "n_undefined",
)


def method_values(measures: Sequence[Measure], boot: Bootstrap) -> pd.DataFrame:
    """One row a method and measure, seeds averaged; columns `COLUMNS`.

    The interval resamples notes and training seeds, as the comparisons do; the teacher, of one
    seed, is resampled over notes alone. Measures undefined on every note are left out; where one
    is undefined on some, `n_undefined` counts the pairs of note and seed that it leaves out.

    A score that falls with every label absent from a resample (macro-F1 over a fixed set) has no
    fair percentile interval: where the interval misses the value, none is given.
    """
    rows = []
    for measure in measures:
        statistics: dict[Model, Statistics] = {
            **{model: _summed(values) for model, values in measure.values.items()},
            **measure.statistics,
        }
        for method in dict.fromkeys(name for name, _ in statistics):
            own = [key for key in sorted(statistics) if key[0] == method]
            row = _row([statistics[key] for key in own], measure, boot)
            if row is not None:
                scores = [measure.values[key] for key in own if key in measure.values]
                undefined = sum(int(np.isnan(values).sum()) for values in scores)
                rows.append((method, measure.name, *row, len(own), undefined))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(
    models: list[Statistics], measure: Measure, boot: Bootstrap
) -> tuple[float, float, float, int] | None:
    notes = models[0][0].shape[0]
    point = point_scores(models, measure.reduce)
    if np.isnan(point).all():
        return None
    drawn = draw(notes, len(models), boot.resamples, boot.seed)
    scores = resampled_scores(models, measure.reduce, drawn)
    defined = ~np.isnan(scores)
    mean = mean_of(
        (drawn.seeds * np.where(defined, scores, 0.0)).sum(-1), (drawn.seeds * defined).sum(-1)
    )
    found = summarise(mean, float(np.nanmean(point)))
    if not found.low <= found.point <= found.high:
        return found.point, np.nan, np.nan, notes
    return found.point, found.low, found.high, notes


def _summed(values: Array) -> Statistics:
    """A per-note score as what a mean sums: the values and whether they are defined."""
    known = ~np.isnan(values)
    return np.where(known, values, 0.0), known.astype(np.float64)

"""Every comparison of two methods, on every score: differences, tests, correction, marks.

Reading one row: `difference` is method less baseline, seeds averaged; `mark` is "up" or "down" (the
sign of the difference, not whether that is good) if the 95 % interval excludes 0 and, for scores
that exist per document, Wilcoxon's p is below alpha; "" otherwise. `p_holm` corrects, within
`family`, Wilcoxon's p, or the bootstrap's where a score exists for a whole split only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from mechdistill.evaluate.frequency import GROUPS
from mechdistill.significance.bootstrap import (
    Array,
    Difference,
    Reduce,
    Resamples,
    Statistics,
    draw,
    mean_of,
    paired_difference,
    point_scores,
)
from mechdistill.significance.holm import holm
from mechdistill.significance.wilcoxon import wilcoxon

TABLE_METRICS = (
    "focus",
    "confusion",
    "las",
    "macro_f1_gold_present",
    "micro_f1",
    "sharp",
    "align",
    "loop",
    "help",
)
"""Metrics of the main tables: a Holm family of their own, so that variants do not dilute it."""

FREQUENCY_METRICS = tuple(f"{kind}_f1_{group}" for kind in ("micro", "macro") for group in GROUPS)
"""F1 by training frequency, a family of its own for the same reason."""

Model = tuple[str, int]
"""Method and seed."""


@dataclass(frozen=True)
class Measure:
    """One score of all models.

    Attributes:
        values: per-document scores [documents] by model, nan where undefined; empty for a score
            that only a whole split has.
        statistics: for such a score, what it is a function of, by model.
        reduce: that function.
    """

    name: str
    values: Mapping[Model, Array] = field(default_factory=dict)
    statistics: Mapping[Model, Statistics] = field(default_factory=dict)
    reduce: Reduce = mean_of


class Pair(NamedTuple):
    """`method` is compared with `baseline`; pairs of one `role` answer one question."""

    method: str
    baseline: str
    role: str


@dataclass(frozen=True)
class Settings:
    """Number of resamples, level of the tests and seed of the resampling."""

    bootstrap: int
    alpha: float
    seed: int


def compare(
    measures: Sequence[Measure], pairs: Sequence[Pair], best_baseline: str, settings: Settings
) -> pd.DataFrame:
    """One row for each measure and pair that both have (see the head of this file).

    Args:
        best_baseline: the baseline whose comparison carries the tables' marks, chosen on the
            validation split.
    """
    rows = [
        _row(measure, pair, best_baseline, settings)
        for measure in measures
        for pair in pairs
        if _paired_models(measure, pair)
    ]
    frame = pd.DataFrame(rows)
    tested = frame["p_wilcoxon"].where(frame["p_wilcoxon"].notna(), frame["p_bootstrap"])
    frame["p_holm"] = np.nan
    frame["family_size"] = 0
    for members in frame.groupby("family").groups.values():
        frame.loc[members, "p_holm"] = holm(tested.loc[members].to_numpy(dtype=np.float64))
        frame.loc[members, "family_size"] = int(tested.loc[members].notna().sum())
    return frame


def _row(measure: Measure, pair: Pair, best_baseline: str, settings: Settings) -> dict[str, object]:
    models = _paired_models(measure, pair)
    if measure.values:
        new = np.stack([measure.values[m] for m, _ in models])
        base = np.stack([measure.values[b] for _, b in models])
        outcome = _compare_documents(new, base, settings)
    else:
        outcome = _compare_corpora(
            [measure.statistics[m] for m, _ in models],
            [measure.statistics[b] for _, b in models],
            measure.reduce,
            settings,
        )
    difference, p = outcome.difference, outcome.p_wilcoxon
    significant = difference.excludes_zero and (np.isnan(p) or p < settings.alpha)
    return {
        "metric": measure.name,
        "method": pair.method,
        "baseline": pair.baseline,
        "family": f"{pair.role}/{_tier(measure.name)}",
        "is_best_baseline": pair.baseline == best_baseline and pair.role == "baseline",
        "method_value": outcome.new,
        "reference_value": outcome.base,
        "difference": difference.point,
        "difference_bootstrap": difference.mean,
        "ci_low": difference.low,
        "ci_high": difference.high,
        "standard_error": difference.standard_error,
        "detectable": difference.detectable,
        "p_bootstrap": difference.p,
        "p_wilcoxon": p,
        "degenerate": outcome.degenerate,
        "mark": ("up" if difference.point > 0 else "down") if significant else "",
        "n_documents": outcome.documents,
        "n_undefined": outcome.undefined,
        "n_seeds": len(models),
    }


def _tier(metric: str) -> str:
    if metric in TABLE_METRICS:
        return "table"
    return "frequency" if metric in FREQUENCY_METRICS else "other"


class _Outcome(NamedTuple):
    new: float
    base: float
    difference: Difference
    p_wilcoxon: float
    degenerate: bool
    documents: int
    undefined: int


def _compare_documents(new: Array, base: Array, settings: Settings) -> _Outcome:
    """A score that each document has; [seeds, documents], nan where undefined.

    A (seed, document) where either method's score is undefined counts for neither.
    """
    defined = ~(np.isnan(new) | np.isnan(base))
    resamples = draw(new.shape[1], len(new), settings.bootstrap, settings.seed)
    masked_new, masked_base = masked(new, defined), masked(base, defined)
    difference = paired_difference(masked_new, masked_base, mean_of, resamples)
    per_document = mean_of(np.where(defined, new - base, 0.0).sum(0), defined.sum(0))
    test = wilcoxon(per_document[defined.any(0)])
    return _Outcome(
        new=_mean_score(masked_new),
        base=_mean_score(masked_base),
        difference=difference,
        p_wilcoxon=test.p if defined.any() else np.nan,
        degenerate=test.degenerate,
        documents=int(defined.any(0).sum()),
        undefined=int((~defined).sum()),
    )


def _compare_corpora(
    new: Sequence[Statistics], base: Sequence[Statistics], reduce: Reduce, settings: Settings
) -> _Outcome:
    """A score that only a whole split has: no Wilcoxon test, since resamples are no replicates."""
    documents = new[0][0].shape[0]
    resamples: Resamples = draw(documents, len(new), settings.bootstrap, settings.seed)
    return _Outcome(
        new=float(point_scores(new, reduce).mean()),
        base=float(point_scores(base, reduce).mean()),
        difference=paired_difference(new, base, reduce, resamples),
        p_wilcoxon=float("nan"),
        degenerate=False,
        documents=documents,
        undefined=0,
    )


def masked(values: Array, defined: npt.NDArray[np.bool_]) -> list[Statistics]:
    """Per-document scores [seeds, documents] as what `mean_of` sums, undefined ones left out."""
    return [
        (np.where(known, row, 0.0), known.astype(np.float64))
        for row, known in zip(values, defined, strict=True)
    ]


def _mean_score(statistics: Sequence[Statistics]) -> float:
    scores = point_scores(statistics, mean_of)
    known = scores[~np.isnan(scores)]
    return float(known.mean()) if len(known) else float("nan")


def _paired_models(measure: Measure, pair: Pair) -> list[tuple[Model, Model]]:
    """Models of equal seeds; the one teacher meets every seed.

    Never other seeds: a method whose seed has no value (an empty pool) loses that seed for both.
    """
    known = measure.values or measure.statistics
    new = sorted(seed for method, seed in known if method == pair.method)
    base = sorted(seed for method, seed in known if method == pair.baseline)
    if pair.role == "teacher":
        return [((pair.method, s), (pair.baseline, b)) for s in new for b in base]
    return [((pair.method, s), (pair.baseline, s)) for s in new if s in base]

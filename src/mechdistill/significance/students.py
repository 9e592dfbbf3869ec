"""What the students of one data set say together: gains averaged over them, large less small.

A contrast is a weighted sum of scores, each of one method of one member of a joined study. Members
of a data set share its notes, and their seeds are paired: seed s of each sees the same order of
data. So documents and seeds are resampled once for all terms of a contrast. Students are what the
study chose, no sample of students: they are not resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mechdistill.significance.bootstrap import (
    Difference,
    Reduce,
    Statistics,
    draw,
    mean_of,
    point_scores,
    resampled_scores,
    seed_mean,
    summarise,
)
from mechdistill.significance.compare import Measure, Settings, masked
from mechdistill.significance.holm import holm
from mechdistill.significance.wilcoxon import wilcoxon

GAIN, LARGER = "gain", "larger"
"""The questions: the proposed method less baselines, students averaged; a method of the largest
student less the same of the smallest."""
COLUMNS = (
    *("question", "metric", "method", "baseline", "students", "n_students"),
    *("difference", "ci_low", "ci_high", "standard_error", "detectable"),
    *("p_bootstrap", "p_wilcoxon", "p_holm", "mark", "n_documents", "n_undefined", "n_seeds"),
)


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of scores.

    Attributes:
        baseline: methods on its negative side, parted by commas.
        weights: by (member, method), as `cell` names it.
        students: of the members, in the order of the study.
    """

    question: str
    method: str
    baseline: str
    students: tuple[str, ...]
    weights: Mapping[str, float]


def cell(member: str, method: str) -> str:
    """Name of a method of a member in the measures of a data set."""
    return f"{member}/{method}"


def gain_over_mean(students: Mapping[str, str], method: str, rivals: Sequence[str]) -> Contrast:
    """`method` less the mean of `rivals`, averaged over the members.

    Args:
        students: member -> its student, for the members that train all of these.
    """
    share = 1 / len(students)
    weights = {cell(member, method): share for member in students}
    weights |= {
        cell(member, rival): -share / len(rivals) for member in students for rival in rivals
    }
    return Contrast(GAIN, method, ",".join(rivals), tuple(students.values()), weights)


def larger_less_smaller(students: Mapping[str, str], method: str) -> Contrast:
    """`method` of the last member less the same of the first.

    Args:
        students: member -> its student, the smallest first.
    """
    first, *_, last = students
    weights = {cell(last, method): 1.0, cell(first, method): -1.0}
    return Contrast(LARGER, method, method, (students[last], students[first]), weights)


def contrast_table(
    measures: Sequence[Measure], contrasts: Sequence[Contrast], settings: Settings
) -> pd.DataFrame:
    """One row for each measure and contrast that it has all terms of; columns `COLUMNS`.

    `p_holm` corrects Wilcoxon's p, or the bootstrap's where a score exists for a whole split only,
    within each question.
    """
    rows = [
        row
        for contrast in contrasts
        for measure in measures
        if (row := _row(measure, contrast, settings)) is not None
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    tested = frame["p_wilcoxon"].where(frame["p_wilcoxon"].notna(), frame["p_bootstrap"])
    for members in frame.groupby("question").groups.values():
        frame.loc[members, "p_holm"] = holm(tested.loc[members].to_numpy(dtype=np.float64))
    return frame


def _row(measure: Measure, contrast: Contrast, settings: Settings) -> dict[str, object] | None:
    seeds = _shared_seeds(measure, contrast)
    if not seeds:
        return None
    terms = _terms(measure, contrast, seeds)
    difference = _difference(terms, contrast, settings)
    significant = difference.excludes_zero and (
        np.isnan(terms.p_wilcoxon) or terms.p_wilcoxon < settings.alpha
    )
    return {
        "question": contrast.question,
        "metric": measure.name,
        "method": contrast.method,
        "baseline": contrast.baseline,
        "students": "; ".join(contrast.students),
        "n_students": len(contrast.students),
        "difference": difference.point,
        "ci_low": difference.low,
        "ci_high": difference.high,
        "standard_error": difference.standard_error,
        "detectable": difference.detectable,
        "p_bootstrap": difference.p,
        "p_wilcoxon": terms.p_wilcoxon,
        "p_holm": np.nan,
        "mark": ("up" if difference.point > 0 else "down") if significant else "",
        "n_documents": terms.documents,
        "n_undefined": terms.undefined,
        "n_seeds": len(seeds),
    }


@dataclass(frozen=True)
class _Terms:
    """What the scores of a contrast are functions of, by term and seed, and Wilcoxon's p."""

    statistics: Mapping[str, Sequence[Statistics]]
    reduce: Reduce
    p_wilcoxon: float
    documents: int
    undefined: int


def _terms(measure: Measure, contrast: Contrast, seeds: Sequence[int]) -> _Terms:
    """A (seed, document) where one term is undefined counts for none."""
    if not measure.values:
        own = {t: [measure.statistics[t, seed] for seed in seeds] for t in contrast.weights}
        documents = next(iter(own.values()))[0][0].shape[0]
        return _Terms(own, measure.reduce, float("nan"), documents, 0)
    values = {t: np.stack([measure.values[t, seed] for seed in seeds]) for t in contrast.weights}
    defined = np.asarray(~np.isnan(np.stack(list(values.values()))).any(0))
    summed = sum(contrast.weights[t] * np.where(defined, own, 0.0) for t, own in values.items())
    per_document = mean_of(np.sum(summed, 0), defined.sum(0))[defined.any(0)]
    return _Terms(
        statistics={t: masked(own, defined) for t, own in values.items()},
        reduce=mean_of,
        p_wilcoxon=wilcoxon(per_document).p if defined.any() else float("nan"),
        documents=int(defined.any(0).sum()),
        undefined=int((~defined).sum()),
    )


def _shared_seeds(measure: Measure, contrast: Contrast) -> list[int]:
    """Seeds of which every term has a model."""
    known = measure.values or measure.statistics
    own = [{seed for name, seed in known if name == term} for term in contrast.weights]
    return sorted(set.intersection(*own))


def _difference(terms: _Terms, contrast: Contrast, settings: Settings) -> Difference:
    one = next(iter(terms.statistics.values()))
    drawn = draw(one[0][0].shape[0], len(one), settings.bootstrap, settings.seed)
    resampled = np.zeros((settings.bootstrap, len(one)))
    point = np.zeros(len(one))
    for term, weight in contrast.weights.items():
        resampled += weight * resampled_scores(terms.statistics[term], terms.reduce, drawn)
        point += weight * point_scores(terms.statistics[term], terms.reduce)
    return summarise(seed_mean(resampled, drawn.seeds), float(seed_mean(point, np.ones(len(one)))))

"""Metrics of predicted label sets, all from counts of hits, false alarms and misses.

The label space is fixed beforehand, never inferred from what happens to be predicted. Macro-F1 has
no single meaning for labels that the evaluated split does not contain, so its variants have names:

| name         | mean of the per-label F1 over                                              |
|--------------|----------------------------------------------------------------------------|
| gold_present | labels gold at least once in the split (Edin et al. 2023); the primary one |
| all          | every label of the space, 0/0 counting 0 (Eq. 11 read literally)           |
| seen, unseen | of the labels of gold_present, those (not) gold in training                |
| caml         | not a mean of F1: harmonic mean of macro-precision and macro-recall        |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Array = npt.NDArray[np.float64]


class LabelCounts(NamedTuple):
    """Sparse 0/1 matrices [documents, labels]; a sum over documents gives a corpus' counts."""

    hit: csr_array
    false_alarm: csr_array
    missed: csr_array


def label_counts(
    gold: Sequence[Collection[str]],
    predicted: Sequence[Collection[str]],
    labels: Sequence[str],
) -> LabelCounts:
    """Counts of each document over the fixed space `labels`.

    Raises:
        KeyError: a gold or predicted label is outside the space (predictions are normalised
            before).
    """
    truth, guess = _indicator(gold, labels), _indicator(predicted, labels)
    hit = truth.multiply(guess).tocsr()
    return LabelCounts(hit, csr_array(guess - hit), csr_array(truth - hit))


def per_label_f1(hit: Array, false_alarm: Array, missed: Array) -> Array:
    """F1 = 2 hit / (2 hit + false alarm + missed) elementwise, 0 where the denominator is 0."""
    return _ratio(2 * hit, 2 * hit + false_alarm + missed)


def micro_f1(hit: Array, false_alarm: Array, missed: Array) -> Array:
    """F1 of the counts summed over the last axis (labels)."""
    return per_label_f1(hit.sum(-1), false_alarm.sum(-1), missed.sum(-1))


def micro_f1_among(
    hit: Array, false_alarm: Array, missed: Array, among: npt.NDArray[np.bool_]
) -> Array:
    """F1 of the counts summed over the labels of `among` [labels]."""
    return micro_f1(hit[..., among], false_alarm[..., among], missed[..., among])


def macro_f1(hit: Array, false_alarm: Array, missed: Array, among: npt.NDArray[np.bool_]) -> Array:
    """Mean of per-label F1 over the labels marked in `among` [labels] (Eq. 11); nan if none is."""
    scores = per_label_f1(hit, false_alarm, missed)
    if not among.any():
        return np.full(scores.shape[:-1], np.nan)
    mean: Array = scores[..., among].mean(-1)
    return mean


def macro_f1_where_gold(
    hit: Array, false_alarm: Array, missed: Array, among: npt.NDArray[np.bool_]
) -> Array:
    """Mean of per-label F1 over the labels of `among` that are gold in these very counts.

    The same as `macro_f1` on the split that `among` was taken from. In a resample of it about a
    third of the rare labels are not drawn; counted as 0 they would pull every method towards 0,
    and differences with it, so that an interval need not even contain its own point.
    """
    counted = among & (hit + missed > 0)
    scores = np.where(counted, per_label_f1(hit, false_alarm, missed), 0.0)
    number = counted.sum(-1)
    mean: Array = np.where(number == 0, np.nan, scores.sum(-1) / np.maximum(number, 1))
    return mean


def caml_f1(hit: Array, false_alarm: Array, missed: Array) -> Array:
    """Harmonic mean of macro-precision and macro-recall over all labels (Mullenbach 2018)."""
    precision = _ratio(hit, hit + false_alarm).mean(-1)
    recall = _ratio(hit, hit + missed).mean(-1)
    return _ratio(2 * precision * recall, precision + recall)


def samples_f1(counts: LabelCounts) -> Array:
    """F1 of each document [documents]; 1 where nothing is gold and nothing predicted."""
    hit, false_alarm, missed = (_row_sums(matrix) for matrix in counts)
    scores = per_label_f1(hit, false_alarm, missed)
    scores[(hit + false_alarm + missed) == 0] = 1.0
    return scores


def exact_match(counts: LabelCounts) -> Array:
    """1 for each document whose predicted set is the gold set [documents]."""
    wrong = _row_sums(counts.false_alarm) + _row_sums(counts.missed)
    matches: Array = (wrong == 0).astype(np.float64)
    return matches


def label_groups(
    gold: Iterable[Collection[str]], labels: Sequence[str], training_gold: Collection[str]
) -> dict[str, npt.NDArray[np.bool_]]:
    """Which labels each macro-F1 variant averages over, from the full split's gold labels.

    Taken once from the full split. Resamples of documents average over those labels of a group
    that are gold in them (`macro_f1_where_gold`): a label that a resample lacks would count 0.
    """
    gold_labels = set().union(*gold)
    present = np.array([label in gold_labels for label in labels], dtype=bool)
    seen = np.array([label in training_gold for label in labels], dtype=bool)
    return {
        "gold_present": present,
        "all": np.ones(len(labels), dtype=bool),
        "seen": present & seen,
        "unseen": present & ~seen,
    }


def _indicator(sets: Sequence[Collection[str]], labels: Sequence[str]) -> csr_array:
    column = {label: i for i, label in enumerate(labels)}
    pairs = [
        (row, column[label]) for row, found in enumerate(sets) for label in dict.fromkeys(found)
    ]
    rows = [row for row, _ in pairs]
    columns = [label for _, label in pairs]
    return csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(sets), len(labels)))


def _row_sums(matrix: csr_array) -> Array:
    return np.asarray(matrix.sum(1), dtype=np.float64)


def _ratio(numerator: Array, denominator: Array) -> Array:
    zero = denominator == 0
    ratio: Array = np.where(zero, 0.0, numerator / np.where(zero, 1.0, denominator))
    return ratio

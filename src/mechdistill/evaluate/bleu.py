"""BLEU-4 of a student's reasoning against the teacher's (Eq. 9), by sacreBLEU with its defaults."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU

STATISTICS = (
    *(f"bleu_match_{n}" for n in range(1, 5)),
    *(f"bleu_total_{n}" for n in range(1, 5)),
    "bleu_length",
    "bleu_reference_length",
)
"""Counts of one document, of which BLEU of a corpus is a function; their sums may be resampled."""

_SENTENCE = BLEU(effective_order=True)  # short texts score on the n-grams that they have


def sentence_bleu(hypothesis: str, reference: str) -> float:
    """BLEU-4 of one text, 0 to 100; an empty hypothesis scores 0."""
    return float(_SENTENCE.sentence_score(hypothesis, [reference]).score)


def statistics(hypothesis: str, reference: str) -> npt.NDArray[np.float64]:
    """The counts [10] of one document, in the order of `STATISTICS`."""
    score = _SENTENCE.sentence_score(hypothesis, [reference])
    return np.array([*score.counts, *score.totals, score.sys_len, score.ref_len], dtype=np.float64)


def corpus_bleu(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """BLEU-4 of corpora from their summed counts [..., 10], 0 to 100."""
    flat = counts.reshape(-1, len(STATISTICS))
    scores = np.array([_bleu(row) for row in flat.tolist()])
    return scores.reshape(counts.shape[:-1])


def signature() -> str:
    """How the corpus score is computed, in sacreBLEU's notation."""
    corpus = BLEU()
    corpus.corpus_score(["a"], [["a"]])  # the number of references is known only after a score
    return str(corpus.get_signature())


def _bleu(counts: Sequence[float]) -> float:
    whole = [round(count) for count in counts]
    score = BLEU.compute_bleu(
        correct=whole[:4], total=whole[4:8], sys_len=whole[8], ref_len=whole[9], smooth_method="exp"
    )
    return float(score.score)

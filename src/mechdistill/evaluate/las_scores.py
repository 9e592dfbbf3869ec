"""Per-example scores of what the simulator answered (Eq. 8; `evaluate.las`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mechdistill.evaluate.label_sets import exact_match, label_counts, samples_f1
from mechdistill.evaluate.las import leaks
from mechdistill.evaluate.score_rows import labelled, score_rows

VIEWS = ("both", "question", "reasoning")
"""What the simulator sees."""


def simulatability_scores(answers: pd.DataFrame, labels: Sequence[str]) -> pd.DataFrame:
    """Scores of the rows that `evaluate.simulatability.simulate` returns.

    Returns:
        rows (model, method, seed, example, metric, value) of `simulator_VIEW`, a document's F1 of
        the simulator's codes; `las`, that of both less that of the question alone; `las_exact`, the
        same of equal sets; `las_leaking`, 1 where the reasoning alone gives the answer. nan where
        there is no reasoning, but for `simulator_question`.
    """
    named: list[tuple[str, str, int]] = [
        (model, method, int(seed))
        for model, method, seed in answers[["model", "method", "seed"]]
        .drop_duplicates()
        .itertuples(index=False)
    ]
    scores = [
        labelled(score_rows(_scores(answers[answers["model"] == who[0]], labels)), *who)
        for who in named
    ]
    return pd.concat(scores, ignore_index=True)


def _scores(answers: pd.DataFrame, labels: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    gold = list(answers["gold"])
    counts = {view: label_counts(gold, list(answers[view]), labels) for view in VIEWS}
    f1 = {view: samples_f1(of) for view, of in counts.items()}
    exact = {view: exact_match(of) for view, of in counts.items()}
    columns = {
        **{f"simulator_{view}": values for view, values in f1.items()},
        "las": f1["both"] - f1["question"],
        "las_exact": exact["both"] - exact["question"],
        "las_leaking": leaks(f1["reasoning"]).astype(np.float64),
    }
    reasoned = answers["reasoned"].to_numpy(dtype=bool)
    for metric, values in columns.items():
        shown = values if metric == "simulator_question" else np.where(reasoned, values, np.nan)
        for example, value in zip(answers["example"], shown, strict=True):
            yield str(example), metric, float(value)

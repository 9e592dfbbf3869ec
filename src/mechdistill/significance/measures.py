"""All scores of all models as measures that can be compared, from the per-example tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mechdistill.evaluate import bleu, frequency, label_sets, las, ranking
from mechdistill.evaluate.perplexity import perplexity
from mechdistill.significance.bootstrap import Array, Statistics, mean_of, point_scores
from mechdistill.significance.compare import Measure, Model

PERPLEXITY_STATISTICS = ("perplexity_nll", "n_tokens")
NOT_SCORES = {*bleu.STATISTICS, *PERPLEXITY_STATISTICS}
"""Rows of the score table that are counts behind a score, and no score of their own."""


DATA_LEVELS = {"anchor_near_cosine", "confusion_0", "simulator_question"}
"""Metrics that the data fix, the same for every model: nothing to compare."""


def document_measures(scores: pd.DataFrame) -> list[Measure]:
    """Every metric of the score table (model, method, seed, example, metric, value)."""
    documents = sorted(scores["example"].unique())
    return [
        Measure(str(metric), values=_by_model(rows, documents))
        for metric, rows in scores.groupby("metric", sort=False)
        if metric not in NOT_SCORES
    ]


def corpus_measures(
    predictions: pd.DataFrame,
    scores: pd.DataFrame,
    labels: Sequence[str],
    training_gold: Sequence[Collection[str]],
    precision_at: Sequence[int],
) -> list[Measure]:
    """Scores that only a whole split has: F1 variants, PSP@k, perplexity, corpus BLEU, LAS by leak,
    and F1 by training frequency.

    Args:
        predictions: gold and predicted label lists (method, seed, example).
        scores: the score table, for the counts behind perplexity and BLEU.
        labels: the whole label space.
        training_gold: gold labels of each training document: which labels were seen, how often.
        precision_at: k of PSP@k.
    """
    return (
        _f1_measures(predictions, labels, set().union(*training_gold))
        + _psp_measures(predictions, labels, training_gold, precision_at)
        + _counted(scores, "perplexity", PERPLEXITY_STATISTICS, perplexity)
        + _counted(scores, "bleu_corpus", bleu.STATISTICS, _stacked(bleu.corpus_bleu))
        + _frequency_measures(predictions, labels, training_gold)
        + _simulatability_measures(scores)
    )


def validation_scores(
    predictions: pd.DataFrame, labels: Sequence[str], methods: Collection[str]
) -> dict[str, float]:
    """Micro-F1 of each method on (validation) predictions, seeds averaged."""
    measure = _f1_measures(predictions, labels, set())[0]
    return {
        method: float(
            np.mean(
                [
                    point_scores([statistics], measure.reduce)[0]
                    for (name, _), statistics in measure.statistics.items()
                    if name == method
                ]
            )
        )
        for method in methods
    }


def corpus_table(measures: Sequence[Measure], names: Mapping[Model, str]) -> pd.DataFrame:
    """Every measure of every model on the whole split: its corpus score or mean over documents.

    Args:
        names: model name by method and seed.

    Returns:
        rows (model, method, seed, metric, value, n_documents), documents where it is defined.
    """
    rows = []
    for measure in measures:
        for model, name in names.items():
            if model in measure.values:
                values = measure.values[model]
                known = values[~np.isnan(values)]
                value, count = (known.mean() if len(known) else np.nan), len(known)
            elif model in measure.statistics:
                statistics = measure.statistics[model]
                value = point_scores([statistics], measure.reduce)[0]
                count = statistics[0].shape[0]
            else:
                continue
            rows.append((name, *model, measure.name, float(value), count))
    return pd.DataFrame(rows, columns=["model", "method", "seed", "metric", "value", "n_documents"])


def _f1_measures(
    predictions: pd.DataFrame, labels: Sequence[str], seen: Collection[str]
) -> list[Measure]:
    counts: dict[Model, Statistics] = {
        model: label_sets.label_counts(list(rows["gold"]), list(rows["predicted"]), labels)
        for model, rows in _models(predictions)
    }
    first = predictions.drop_duplicates("example")
    groups = label_sets.label_groups(first["gold"], labels, seen)
    return [
        Measure("micro_f1", statistics=counts, reduce=label_sets.micro_f1),
        *(
            Measure(
                f"macro_f1_{name}",
                statistics=counts,
                reduce=partial(
                    label_sets.macro_f1 if name == "all" else label_sets.macro_f1_where_gold,
                    among=among,
                ),
            )
            for name, among in groups.items()
            if among.any()
        ),
        Measure("macro_f1_caml", statistics=counts, reduce=label_sets.caml_f1),
    ]


def _psp_measures(
    predictions: pd.DataFrame,
    labels: Sequence[str],
    training_gold: Sequence[Collection[str]],
    precision_at: Sequence[int],
) -> list[Measure]:
    uses = frequency.training_uses(training_gold, labels)
    weights = ranking.inverse_propensity(uses, len(training_gold))

    def hits(rows: pd.DataFrame, k: int) -> Statistics:
        pairs = [
            ranking.weighted_hits(list(predicted), list(gold), weights, k)
            for predicted, gold in zip(rows["predicted"], rows["gold"], strict=True)
        ]
        return tuple(np.array(pairs, dtype=np.float64).T)

    return [
        Measure(
            f"psp_at_{k}",
            statistics={model: hits(rows, k) for model, rows in _models(predictions)},
            reduce=mean_of,  # the ratio of the two sums
        )
        for k in precision_at
    ]


def _frequency_measures(
    predictions: pd.DataFrame,
    labels: Sequence[str],
    training_gold: Sequence[Collection[str]],
) -> list[Measure]:
    """Micro- and macro-F1 over the labels of each frequency, where some are gold in the split."""
    counts: dict[Model, Statistics] = {
        model: label_sets.label_counts(list(rows["gold"]), list(rows["predicted"]), labels)
        for model, rows in _models(predictions)
    }
    gold = predictions.drop_duplicates("example")["gold"]
    present = label_sets.label_groups(gold, labels, ())["gold_present"]
    uses = frequency.training_uses(training_gold, labels)
    return [
        Measure(f"{kind}_f1_{group}", statistics=counts, reduce=partial(reduce, among=among))
        for group, among in frequency.frequency_groups(uses).items()
        if (among & present).any()
        for kind, reduce in (
            ("micro", label_sets.micro_f1_among),
            ("macro", label_sets.macro_f1_where_gold),
        )
    ]


def _counted(
    scores: pd.DataFrame, name: str, parts: Sequence[str], reduce: Callable[..., Array]
) -> list[Measure]:
    """A score of summed counts that stand in the score table as rows."""
    rows = scores[scores["metric"].isin(parts)]
    if rows.empty:
        return []
    documents = sorted(rows["example"].unique())
    columns = [_by_model(rows[rows["metric"] == part], documents) for part in parts]
    statistics = {
        model: tuple(np.nan_to_num(column[model]) for column in columns) for model in columns[0]
    }
    return [Measure(name, statistics=statistics, reduce=reduce)]


def _simulatability_measures(scores: pd.DataFrame) -> list[Measure]:
    """LAS of the documents whose reasoning leaks, of the others, and the mean of the two."""
    rows = scores[scores["metric"] == "las"]
    if rows.empty:
        return []
    documents = sorted(rows["example"].unique())
    gain = _by_model(rows, documents)
    leaking = _by_model(scores[scores["metric"] == "las_leaking"], documents)
    parts = {model: las.split_statistics(gain[model], leaking[model] == 1) for model in gain}
    return [
        Measure("las_split", statistics=parts, reduce=las.split_mean),
        Measure("las_leaking_gain", statistics={m: p[:2] for m, p in parts.items()}),
        Measure("las_others_gain", statistics={m: p[2:] for m, p in parts.items()}),
    ]


def _stacked(function: Callable[[Array], Array]) -> Callable[..., Array]:
    def reduce(*columns: Array) -> Array:
        return function(np.stack(columns, axis=-1))

    return reduce


def _by_model(rows: pd.DataFrame, documents: Sequence[Any]) -> dict[Model, Array]:
    values = {}
    for model, own in _models(rows):
        series: npt.NDArray[np.float64] = (
            own.set_index("example")["value"].reindex(list(documents)).to_numpy(dtype=np.float64)
        )
        values[model] = series
    return values


def _models(frame: pd.DataFrame) -> list[tuple[Model, pd.DataFrame]]:
    names, seeds = frame["method"].to_numpy(), frame["seed"].to_numpy()
    models: list[Model] = list(dict.fromkeys(zip(names.tolist(), seeds.tolist(), strict=True)))
    return [
        (model, frame[(names == model[0]) & (seeds == model[1])].sort_values("example"))
        for model in models
    ]

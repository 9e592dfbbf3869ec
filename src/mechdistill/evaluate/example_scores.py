"""Per-example rows (example, metric, value) of the families that need little more than texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from transformers import PreTrainedTokenizerFast

from mechdistill.data.tokenizer import decode_trace
from mechdistill.evaluate import bleu
from mechdistill.evaluate.label_sets import exact_match, label_counts, samples_f1
from mechdistill.evaluate.ranking import precision_at
from mechdistill.evaluate.score_rows import score_rows
from mechdistill.traces.parse import Trace


def label_scores(
    predictions: pd.DataFrame, labels: Sequence[str], ks: Sequence[int]
) -> pd.DataFrame:
    """`samples_f1`, `exact_match` and `p_at_K` of one model's predictions (gold, predicted)."""
    examples = list(predictions["example"])
    gold, predicted = list(predictions["gold"]), list(predictions["predicted"])
    counts = label_counts(gold, predicted, labels)
    columns = {"samples_f1": samples_f1(counts), "exact_match": exact_match(counts)}
    for k in ks:
        columns[f"p_at_{k}"] = np.array(
            [precision_at(list(p), set(g), k) for p, g in zip(predicted, gold, strict=True)]
        )
    return _rows(examples, columns)


def bleu_scores(
    traces: Sequence[Trace],
    teacher: Mapping[str, Trace],
    tokenizer: PreTrainedTokenizerFast,
) -> pd.DataFrame:
    """`bleu` of each trace against the teacher's, with the counts behind a corpus' score.

    Only the reasoning is compared: a list of codes would be scored as prose.
    """
    pairs = [
        (reasoning(trace, tokenizer), reasoning(teacher[trace.example], tokenizer))
        for trace in traces
    ]
    counts = np.array([bleu.statistics(*pair) for pair in pairs])
    columns = {"bleu": np.array([bleu.sentence_bleu(*pair) for pair in pairs])}
    columns |= dict(zip(bleu.STATISTICS, counts.T, strict=True))
    return _rows([trace.example for trace in traces], columns)


def reasoning(trace: Trace, tokenizer: PreTrainedTokenizerFast) -> str:
    """Text of the trace up to the answer list."""
    return decode_trace(tokenizer, trace.tokens[trace.prompt_length : trace.reasoning_end])


def final_confusion(curves: pd.DataFrame) -> pd.DataFrame:
    """`confusion_all`: mean over all late tokens (App. B), for the examples that have curves."""
    cumulative = curves[(curves["kind"] == "cumulative") & (curves["metric"] == "confusion")]
    last = cumulative.sort_values("t").drop_duplicates("example", keep="last")
    return score_rows(
        (str(example), "confusion_all", float(value))
        for example, value in zip(last["example"], last["value"], strict=True)
    )


def _rows(examples: Sequence[str], columns: Mapping[str, npt.NDArray[np.float64]]) -> pd.DataFrame:
    return score_rows(
        (example, metric, float(value))
        for metric, values in columns.items()
        for example, value in zip(examples, values, strict=True)
    )

"""Models whose answers do not depend on what they read: no score of theirs means what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import pandas as pd

from mechdistill.data.examples import Example

FROM = 0.95
"""Share of the documents from which on answers of one kind are all that a model has."""

NO_LABELS, ALL_LABELS, CONSTANT = "no labels", "all labels", "constant output"


def degenerate_kind(
    gold: Sequence[Collection[str]],
    predicted: Sequence[Collection[str]],
    offered: Sequence[Collection[str]],
) -> str:
    """`NO_LABELS`, `ALL_LABELS`, `CONSTANT`, or "" for a model that tells documents apart.

    Args:
        gold: labels of each document; if these are one and the same set, an output that is constant
            may be right.
        predicted: the model's.
        offered: labels that could be answered: the candidates in context.
    """
    guesses = [frozenset(labels) for labels in predicted]
    if _share(not guess for guess in guesses) >= FROM:
        return NO_LABELS
    everything = (guess >= set(there) for guess, there in zip(guesses, offered, strict=True))
    if _share(everything) >= FROM:
        return ALL_LABELS
    if _commonest(guesses) >= FROM > _commonest([frozenset(labels) for labels in gold]):
        return CONSTANT
    return ""


def degenerate_methods(
    predictions: pd.DataFrame, examples: Mapping[str, Example]
) -> dict[str, str]:
    """What is wrong with each method that is degenerate with some seed, in words.

    Args:
        predictions: of `evaluate.predictions`, all models.

    Returns:
        "no labels", or "constant output (2 of 3 seeds)" where it is not so with every seed.
    """
    found: dict[str, list[str]] = {}
    for (method, _), rows in predictions.groupby(["method", "seed"], sort=False):
        offered = [
            example.counted(example.candidates)
            for example in (examples[name] for name in rows["example"])
        ]
        kind = degenerate_kind(list(rows["gold"]), list(rows["predicted"]), offered)
        found.setdefault(str(method), []).append(kind)
    return {method: _in_words(kinds) for method, kinds in found.items() if any(kinds)}


def _in_words(kinds: Sequence[str]) -> str:
    counts = Counter(kind for kind in kinds if kind)
    if len(counts) == 1 and counts.total() == len(kinds):
        return next(iter(counts))
    return ", ".join(f"{kind} ({n} of {len(kinds)} seeds)" for kind, n in sorted(counts.items()))


def _share(which: Iterable[bool]) -> float:
    flags = list(which)
    return sum(flags) / len(flags) if flags else 0.0


def _commonest(sets: Sequence[frozenset[str]]) -> float:
    """Share of the set that most documents have; 0 for one document, which cannot vary."""
    return Counter(sets).most_common(1)[0][1] / len(sets) if len(sets) > 1 else 0.0

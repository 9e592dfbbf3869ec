"""Scores of all heads of any supported model on prompts and reasoning of one's own.

::

    from mechdistill.heads import AnnotatedTrace, score_prompts
    trace = AnnotatedTrace(prompt, reasoning, anchors="heart failure")
    scores = score_prompts(model, tokenizer, trace)
    scores.plot("coarse")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mechdistill.errors import InputError
from mechdistill.heads.annotated_trace import AnnotatedTrace, places_of_annotated
from mechdistill.heads.measure import measure_places
from mechdistill.heads.places import Places
from mechdistill.heads.ranking import score_heads
from mechdistill.models.lending import check_tokenizer, lent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANT = ["factor", "anchor", "sinks"]
_UNMARKED = {"anchor": "unembed", "sinks": "out"}
"""Which variant is meant where a factor has several: that of the printed ranking."""


@dataclass(frozen=True)
class HeadScores:
    """Scores of a model's heads.

    Factors are named in `mechdistill.heads.early_scores.EarlyScores` (phase 1: `coarse`,
    `kurtosis`, `cosine`, ...) and `mechdistill.heads.refinement_scores.RefinementScores` (phase 2:
    `refine`, `loop`, `help`, ...).

    Args:
        table: layer, head (both from 0), depth (in (0, 1]; 1 is the last layer), factor, anchor
            (residual space of the anchors), sinks (whether attention sinks are in the rows or out),
            value (mean over examples), ci_low, ci_high (95 % bootstrap interval over examples; null
            for one example), n (examples with a value).
        values: layer, head, depth, factor, anchor, sinks, example, value: the mean over the
            example's positions.
    """

    table: pd.DataFrame
    values: pd.DataFrame

    def of(
        self, factor: str, *, anchor: str | None = None, sinks: str | None = None
    ) -> pd.DataFrame:
        """The table's rows of one factor, one a head.

        Args:
            factor: its name.
            anchor: `unembed`, `embed` or `context`; None: `unembed`, where the factor has one.
            sinks: `in` or `out`; None: `out`, where it matters.

        Raises:
            InputError: there is no such variant.
        """
        rows = self.table[self.table["factor"] == factor]
        if rows.empty:
            raise InputError(
                f"there is no factor {factor!r}",
                f"use one of {', '.join(sorted(self.table['factor'].unique()))}",
            )
        for column, wanted in (("anchor", anchor), ("sinks", sinks)):
            known = sorted(rows[column].unique())
            value = wanted if wanted is not None else _UNMARKED[column]
            if wanted is None and value not in known:
                value = known[0]
            if value not in known:
                raise InputError(
                    f"factor {factor!r} has no {column} {wanted!r}",
                    f"use one of {', '.join(map(repr, known))}",
                )
            rows = rows[rows[column] == value]
        return rows.reset_index(drop=True)

    def ranking(
        self, factor: str, *, anchor: str | None = None, sinks: str | None = None
    ) -> list[tuple[int, int]]:
        """(layer, head) from the highest value down; ties by layer and head. Arguments as `of`."""
        rows = self.of(factor, anchor=anchor, sinks=sinks).dropna(subset="value")
        rows = rows.sort_values(["value", "layer", "head"], ascending=[False, True, True])
        return [(int(a), int(b)) for a, b in zip(rows["layer"], rows["head"], strict=True)]

    def plot(self, factor: str, *, anchor: str | None = None, sinks: str | None = None) -> Figure:
        """A map of layers and heads. Arguments as `of`."""
        from mechdistill.heads.score_map import draw_score_map

        return draw_score_map(self.of(factor, anchor=anchor, sinks=sinks), factor)


def score_prompts(
    model: Any,
    tokenizer: Any,
    traces: AnnotatedTrace | Sequence[AnnotatedTrace],
    *,
    minimum_keys: int = 8,
    batch_size: int = 8,
    resamples: int = 1000,
    seed: int = 0,
) -> HeadScores:
    """CoarseScore (Eq. 1), RefineScore (Eq. 3), their factors and variants, for every head.

    The model is read in one forward pass a batch, and another with its gradients where there are
    contrasts; afterwards it is as it was, attention implementation and mode included.

    Args:
        model: a causal language model of transformers, of a known family, on any one device and in
            any precision (scores are summed in fp32).
        tokenizer: its fast tokenizer.
        traces: one or several, alike in having anchors and contrasts or not.
        minimum_keys: rows with fewer visible keys have no kurtosis.
        batch_size: traces a forward pass.
        resamples, seed: of the bootstrap over examples.

    Raises:
        InputError: the model or the tokenizer is not supported, or an annotation is not there.
    """
    given = [traces] if isinstance(traces, AnnotatedTrace) else list(traces)
    with lent(model) as tapped:
        check_tokenizer(tokenizer, model)
        places = _all_places(given, tokenizer)
        phases = _phases(places)
        measured = measure_places(
            tapped,
            places,
            name="",
            minimum_keys=minimum_keys,
            batch_size=batch_size,
            phases=phases,
        ).values
    unnamed = [place.example for place in places if not place.anchor_mentions]
    measured = measured[(measured["anchor"] != "context") | ~measured["example"].isin(unnamed)]
    table = score_heads(measured, resamples=resamples, seed=seed)
    if len(places) == 1:
        table[["ci_low", "ci_high"]] = np.nan
    layers = model.config.num_hidden_layers
    shown = ["layer", "head", "depth", *VARIANT]
    return HeadScores(
        table=_named(table, layers)[[*shown, "value", "ci_low", "ci_high", "n"]],
        values=_named(measured, layers)[[*shown, "example", "value"]],
    )


def _all_places(traces: Sequence[AnnotatedTrace], tokenizer: Any) -> list[Places]:
    if not traces:
        raise InputError("there is no trace to score", "give at least one AnnotatedTrace")
    names = [trace.name or f"trace {number}" for number, trace in enumerate(traces, start=1)]
    if len(set(names)) < len(names):
        raise InputError(
            f"two traces have the name {max(names, key=names.count)!r}",
            "give each a name of its own, or none",
        )
    return [places_of_annotated(t, tokenizer, name) for t, name in zip(traces, names, strict=True)]


def _phases(places: Sequence[Places]) -> set[int]:
    """Phases that the annotations allow to score."""
    found = set()
    for phase, what in ((1, "anchors"), (2, "contrasts")):
        having = [bool(place.anchors if phase == 1 else place.refine) for place in places]
        if any(having):
            found.add(phase)
            if not all(having):
                raise InputError(
                    f"{places[having.index(False)].example} has no {what}, "
                    f"{places[having.index(True)].example} has",
                    "score them in two calls",
                )
    return found


def _named(rows: pd.DataFrame, layers: int) -> pd.DataFrame:
    """With the public column names; model and phase left to be dropped."""
    named = rows.rename(columns={"score": "factor"})
    named["depth"] = (named["layer"] + 1) / layers
    return named.reset_index(drop=True)

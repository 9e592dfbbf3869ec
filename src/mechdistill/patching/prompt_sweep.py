"""Patching heads of any supported model on prompts of one's own.

::

    from mechdistill.patching import PromptPair, sweep_single_heads
    pair = PromptPair(clean, corrupted, target=" acute", foils=" chronic")
    sweep = sweep_single_heads(model, tokenizer, pair)
    sweep.plot()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mechdistill.errors import InputError
from mechdistill.models.lending import check_model, check_tokenizer, lent
from mechdistill.patching.conditions import (
    Head,
    conditions,
    distinct_sets,
    head_masks,
    heads_of,
    single_heads,
)
from mechdistill.patching.decision_sweep import sweep_decisions
from mechdistill.patching.effects import margin_table, single_head_table
from mechdistill.patching.margin_sweep import EventEffects, event_effects
from mechdistill.patching.prompt_pairs import PromptPair, forced_pair
from mechdistill.patching.summary import summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INTERVALS = [
    *("ci_low", "ci_high", "pct_gap_low", "pct_gap_high"),
    *("top_minus_random_low", "top_minus_random_high"),
]


@dataclass(frozen=True)
class PatchSweep:
    """What patching did to the margin of the decision, in logits.

    Margin: logit of the target less the highest of the foils'. `denoise` puts heads of the clean
    run into the corrupted one (are they sufficient?), `noise` the other way round (necessary?).
    Site `pattern` replaces attention rows, `output` what the heads mix.

    Args:
        summary: one row a condition: site, direction, then layer, head and depth (single heads) or
            ranking and bin (sets of heads); n; clean, corrupted, patched: mean margins; difference
            (patched less the run that it started from) with ci_low, ci_high; effect (signed so that
            restoring and disturbing are positive); pct_gap: the effect in percent of clean -
            corrupted, null unless the interval of that gap lies above 0 (no_percentage says why);
            pct_gap_low, pct_gap_high; for the ranking `top` also top_minus_random, its effect less
            that of as many random heads. Intervals are 95 % bootstrap intervals over examples, null
            for one example.
        values: one row a condition, draw and example: clean, corrupted, patched.
    """

    summary: pd.DataFrame
    values: pd.DataFrame

    def plot(self) -> Figure:
        """Maps of single heads, or curves over sets of growing size."""
        from mechdistill.patching.sweep_figures import draw_sets, draw_single_heads

        return (draw_single_heads if "head" in self.summary else draw_sets)(self.summary)


def sweep_single_heads(
    model: Any,
    tokenizer: Any,
    pairs: PromptPair | Sequence[PromptPair],
    *,
    branches_per_pass: int = 512,
    resamples: int = 1000,
    seed: int = 0,
) -> PatchSweep:
    """Patch each head of the model alone, at the position that decides.

    Args:
        model: a causal language model of transformers, of a known family; afterwards it is as it
            was.
        tokenizer: its fast tokenizer.
        pairs: one or several; each is an example.
        branches_per_pass: patched positions that are run together.
        resamples, seed: of the bootstrap over examples.

    Raises:
        InputError: the model or the tokenizer is not supported, or a pair cannot be patched.
    """
    size = _size(model)
    planned = single_heads(heads_of(*size))
    effects = _sweep(model, tokenizer, pairs, [c.heads for c in planned], branches_per_pass)
    rows = single_head_table(effects, planned, phase=0, twin="")
    rows["depth"] = (rows["layer"] + 1) / size[0]
    return _patch_sweep(rows, ["layer", "head", "depth"], resamples, seed)


def sweep_ranking(
    model: Any,
    tokenizer: Any,
    pairs: PromptPair | Sequence[PromptPair],
    ranking: Sequence[Head],
    *,
    bins: Sequence[int] = (1, 2, 4, 8, 16),
    draws: int = 10,
    branches_per_pass: int = 512,
    resamples: int = 1000,
    seed: int = 0,
) -> PatchSweep:
    """Patch the first heads of a ranking together, and random, lowest and all heads beside.

    Args:
        ranking: (layer, head), best first, as `HeadScores.ranking` gives it.
        bins: numbers of heads, see `mechdistill.patching.conditions.conditions`.
        draws: of the random controls.
        seed: of the draws, and of the bootstrap over examples.
        model, tokenizer, pairs, branches_per_pass, resamples: see `sweep_single_heads`.

    Raises:
        InputError: as there; or the ranking is empty, names a head twice or one that the model has
            not; or a number is below 1.
    """
    size = _size(model)
    _check_ranking(ranking, size)
    if not bins or min(bins) < 1 or draws < 1:
        raise InputError(
            f"bins {tuple(bins)} with {draws} draws patch nothing", "give numbers of at least 1"
        )
    planned = conditions({"top": ranking}, heads_of(*size), bins, draws, seed)
    sets = distinct_sets(planned)
    effects = _sweep(model, tokenizer, pairs, sets, branches_per_pass)
    rows = margin_table(effects, planned, sets, phase=0, twin="")
    return _patch_sweep(rows, ["ranking", "bin"], resamples, seed)


def _size(model: Any) -> tuple[int, int]:
    """Layers, and query heads a layer."""
    check_model(model)
    return model.config.num_hidden_layers, model.config.num_attention_heads


def _check_ranking(ranking: Sequence[Head], size: tuple[int, int]) -> None:
    if not ranking:
        raise InputError("the ranking holds no head", "give (layer, head) pairs, best first")
    strange = [head for head in ranking if tuple(head) not in set(heads_of(*size))]
    if strange:
        raise InputError(
            f"the model has no head {strange[0]}: it has {size[0]} layers of {size[1]} heads",
            "give (layer, head) pairs, both counted from 0",
        )
    if len(set(ranking)) < len(ranking):
        raise InputError(
            f"the ranking names head {max(ranking, key=list(ranking).count)} twice",
            "name each head once",
        )


def _sweep(
    model: Any,
    tokenizer: Any,
    pairs: PromptPair | Sequence[PromptPair],
    sets: Sequence[frozenset[Head]],
    branches_per_pass: int,
) -> list[EventEffects]:
    """One effect a pair."""
    given = [pairs] if isinstance(pairs, PromptPair) else list(pairs)
    if not given:
        raise InputError("there is no pair to patch", "give at least one PromptPair")
    names = [pair.name or f"pair {number}" for number, pair in enumerate(given, start=1)]
    if len(set(names)) < len(names):
        raise InputError(
            f"two pairs have the name {max(names, key=names.count)!r}",
            "give each a name of its own, or none",
        )
    with lent(model) as tapped:
        check_tokenizer(tokenizer, model)
        forced = [forced_pair(p, tokenizer, name) for p, name in zip(given, names, strict=True)]
        margins = sweep_decisions(
            tapped,
            forced,
            head_masks(sets, *_size(model)),
            pad_id=0,  # any: padding is masked
            branches_per_pass=branches_per_pass,
        )
    return event_effects([(name, 0, "margin") for name in names], margins)


def _patch_sweep(rows: pd.DataFrame, named: list[str], resamples: int, seed: int) -> PatchSweep:
    """Rows of the workflow's tables, summarised and without its columns that are constant here."""
    condition, examples = ["site", "direction", *named], rows["example"].nunique()
    summary = summarise(rows, examples, resamples=resamples, seed=seed, condition=condition).drop(
        columns=["metric", "pct_paper", "n_dropped", "n_donor_window"]
    )
    if examples == 1:
        summary[[column for column in _INTERVALS if column in summary]] = np.nan
    values = rows.drop(columns=["phase", "twin", "metric", "event"], errors="ignore")
    return PatchSweep(summary, values)

"""Sharp, Align, Loop, Help: what a model's pools do on given traces (columns of Table 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.heads.coarse import change_by_epsilon, drop_sinks, kurtosis, log_kurtosis
from mechdistill.heads.places import all_places
from mechdistill.heads.pools import Pool, Pools
from mechdistill.heads.reading import Reading, read_all, slot_mean
from mechdistill.heads.refine import loop_back
from mechdistill.models.margin import margin_gradient
from mechdistill.models.tap import pooled_write
from mechdistill.traces.parse import Trace


def read_mechanisms(
    model: Any,
    traces: Sequence[Trace],
    examples: Iterable[Example],
    space: LabelSpace,
    tokenizer: Any,
    pools: Pools,
    *,
    minimum_keys: int,
    batch_size: int,
) -> pd.DataFrame:
    """Mechanism metrics of a model's pools, traces given (teacher-forced).

    ========================  ====================================================================
    sharp                     log10(1 + max(kappa, 0)) of the pooled row, sinks dropped
    sharp_of_heads            the same of each head's row, weighted mean: another number (B19)
    eps_change                relative change of the pooled row's kurtosis by the printed eps, all
                              visible keys (`mechdistill.heads.coarse.change_by_epsilon`)
    eps_change_without_sinks  the same, sinks dropped
    align                     cosine of the pooled write with the unembedding anchor (A)
    loop                      weighted mean of the heads' loop-back (R)
    help                      cosine of the pooled write with the margin gradient at h_final
    help_scaled               their inner product in standard deviations of the margin (H)
    ========================  ====================================================================

    Args:
        model: attached to the tap, in evaluation mode.
        traces: with tokens of `tokenizer`.
        examples: at least those that the traces belong to.
        space: the label space.
        tokenizer: of the model.
        pools: of this model; metrics of an empty pool are absent.
        minimum_keys: see `mechdistill.heads.coarse.kurtosis`.
        batch_size: traces a forward pass.

    Returns:
        example, metric, value: means over the example's positions; no row without a position.
    """
    rows = [
        (places.example, metric, value)
        for reading in read_all(model, all_places(traces, examples, space, tokenizer), batch_size)
        for metric, values in _metrics(reading, pools, minimum_keys)
        for places, value in zip(reading.places, values.tolist(), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["example", "metric", "value"]).dropna(subset="value")
    return frame.sort_values(["example", "metric"], ignore_index=True)


@torch.no_grad()
def _metrics(reading: Reading, pools: Pools, minimum_keys: int) -> Iterator[tuple[str, Tensor]]:
    early, refine = reading.early >= 0, reading.refine >= 0
    if len(pools.phase1):
        pooled, visible = _pooled_rows(reading, pools.phase1)
        sinkless, kept = drop_sinks(pooled, visible, reading.sinks()[:, 0])
        sharp = log_kurtosis(kurtosis(sinkless, kept, minimum_keys=minimum_keys))
        of_heads = _sharpness_of_heads(reading, pools.phase1, minimum_keys)
        printed = change_by_epsilon(pooled, visible, minimum_keys=minimum_keys)
        without = change_by_epsilon(sinkless, kept, minimum_keys=minimum_keys)
        write, _ = _pooled_writes(reading, pools.phase1)
        anchor = reading.anchor("unembed", layer=0)[:, None]
        yield "sharp", _position_mean(sharp, early)
        yield "sharp_of_heads", _position_mean(of_heads, early)
        yield "eps_change", _position_mean(printed, early)
        yield "eps_change_without_sinks", _position_mean(without, early)
        yield "align", _position_mean(cosine_similarity(write, anchor, dim=-1), early)
    if len(pools.phase2):
        _, write = _pooled_writes(reading, pools.phase2)
        gradient = margin_gradient(reading.model, reading.h_final, *reading.pair_ids())
        scaled = (write * gradient).sum(-1) / pools.margin_std
        yield "loop", _position_mean(_pooled_loop(reading, pools.phase2), refine)
        yield "help", _position_mean(cosine_similarity(write, gradient, dim=-1), refine)
        yield "help_scaled", _position_mean(scaled, refine)


def _pooled_rows(reading: Reading, pool: Pool) -> tuple[Tensor, Tensor]:
    """The pooled row of each early query, sinks included, and its keys: [B, E, T] each.

    Its keys are those that some head of the pool may see: layers may have windows of their own.
    """
    pooled, seen = torch.zeros(()), torch.zeros((), dtype=torch.bool)
    for layer in pool.used_layers():
        rows, visible = reading.early_rows(layer)
        weights = pool.layer_weights(layer, rows.shape[1])
        pooled = pooled + torch.einsum("bhqk,h->bqk", rows, weights)
        seen = seen | visible[:, 0]
    return pooled, seen


def _sharpness_of_heads(reading: Reading, pool: Pool, minimum_keys: int) -> Tensor:
    """Weighted mean over the heads of each one's own sharpness: [B, E]."""
    total = torch.zeros(())
    for layer in pool.used_layers():
        rows, kept = drop_sinks(*reading.early_rows(layer), reading.sinks())
        sharp = log_kurtosis(kurtosis(rows, kept, minimum_keys=minimum_keys))
        total = total + torch.einsum("bhq,h->bq", sharp, pool.layer_weights(layer, rows.shape[1]))
    return total


def _pooled_writes(reading: Reading, pool: Pool) -> tuple[Tensor, Tensor]:
    """At the early [B, E, d] and the refinement slots [B, R, d]."""
    total = torch.zeros(())
    for layer in pool.used_layers():
        mixed = reading.records[layer].mixed
        weights = pool.layer_weights(layer, mixed.shape[1])
        total = total + pooled_write(reading.model, layer, mixed, weights)
    early = reading.early.shape[1]
    return total[:, :early], total[:, early:]


def _pooled_loop(reading: Reading, pool: Pool) -> Tensor:
    """[B, R]; NaN where no mention precedes."""
    shortlist, near_miss = reading.shortlist()
    total = torch.zeros(())
    for layer in pool.used_layers():
        key, _ = reading.at_mentions(layer)
        loop = loop_back(reading.refine_queries(layer), key, shortlist, near_miss)
        total = total + torch.einsum("bhq,h->bq", loop, pool.layer_weights(layer, key.shape[1]))
    return total


def _position_mean(values: Tensor, used: Tensor) -> Tensor:
    """[B, Q] -> [B]."""
    return slot_mean(values[:, None], used)[:, 0]

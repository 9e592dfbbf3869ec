"""Run the teacher over its own traces, once, and keep what students are compared on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from mechdistill.distil.batch import TrainingBatch, collate
from mechdistill.distil.cot_loss import top_k_with_remainder
from mechdistill.distil.forward import ForwardPass, run
from mechdistill.distil.mechanisms import (
    CoarseSignals,
    PooledHeads,
    RefineSignals,
    no_signals,
    phase_signals,
)
from mechdistill.distil.sequences import TrainingSequence, decidable, usable
from mechdistill.distil.targets import ExampleTargets, Targets
from mechdistill.heads.pools import Pools
from mechdistill.models.margin import margin_gradient
from mechdistill.progress import track
from mechdistill.traces.parse import Trace


@torch.no_grad()
def cache_targets(
    teacher: Any,
    sequences: Sequence[TrainingSequence],
    anchors: Mapping[str, Tensor],
    pools: Pools,
    *,
    top_k: int,
    minimum_keys: int,
    batch_size: int,
    pad_id: int,
    special_ids: Collection[int],
) -> Targets:
    """Distributions and pooled signals of the teacher on whole traces.

    Args:
        teacher: in evaluation mode.
        sequences: whole traces, one an example.
        anchors: c_anchor(x) of each example in the teacher's residual space.
        pools: the teacher's; a phase without heads is cached as zeros and marked.
        top_k: log-probabilities kept a token.
        minimum_keys: see `mechdistill.heads.coarse.kurtosis`.
        batch_size: traces a forward pass.
        pad_id, special_ids: of the tokenizer.
    """
    config = teacher.config
    heads = PooledHeads.of(pools, config.num_hidden_layers, config.num_attention_heads)
    # like lengths together: less padding
    ordered = sorted(sequences, key=lambda sequence: len(sequence.tokens))
    batches = [ordered[i : i + batch_size] for i in range(0, len(ordered), batch_size)]
    found: dict[str, ExampleTargets] = {}
    for chosen in track(batches, "teacher batch"):
        batch = collate(chosen, pad_id, special_ids)
        passed = run(teacher, batch, heads.tap(batch.slots))
        signals = _signals(teacher, batch, passed, anchors, heads, pools.margin_std, minimum_keys)
        found |= _split(batch, passed, signals, top_k)
    return Targets(
        {sequence.example: found[sequence.example] for sequence in sequences},
        {phase: len(pools.of(phase)) for phase in (1, 2)},
        minimum_keys,
    )


def without_distributions(targets: Targets, groups: Mapping[str, tuple[int, ...]]) -> Targets:
    """Targets for students of another tokenizer: their vocabulary is not the teacher's.

    Args:
        targets: the teacher's, their rows over groups of tokens.
        groups: of the student's tokens, by example.
    """
    # one token that no loss looks at, since batches take rows of it
    kept = torch.zeros(1, 1, dtype=torch.int32)
    log_probabilities = torch.full((1, 2), 0.5).log()
    examples = {
        name: replace(example, kept=kept, log_probabilities=log_probabilities)
        for name, example in targets.examples.items()
    }
    return replace(targets, examples=examples, groups={name: groups[name] for name in examples})


def describe_traces(traces: Sequence[Trace]) -> pd.DataFrame:
    """One row a trace: example, status, used, tokens of the trace, positions of each phase.

    `refine_left_out` counts refinement positions without a kept or without a rejected mention
    before them.
    """
    rows = [
        {
            "example": trace.example,
            "status": trace.status,
            "used": usable(trace),
            "tokens": len(trace.tokens) - trace.prompt_length,
            "early": len(trace.early),
            "refine": len(decidable(trace.refine)),
            "refine_left_out": len(trace.refine) - len(decidable(trace.refine)),
        }
        for trace in traces
    ]
    return pd.DataFrame(rows)


def _split(
    batch: TrainingBatch,
    passed: ForwardPass,
    signals: tuple[CoarseSignals, RefineSignals],
    top_k: int,
) -> dict[str, ExampleTargets]:
    """A batch's distributions and signals by example."""
    coarse, refine = signals
    kept, log_probabilities = top_k_with_remainder(passed.logits, top_k)
    return {
        batch.examples[row]: ExampleTargets(
            kept=kept[tokens].int(),
            log_probabilities=log_probabilities[tokens],
            rows=coarse.rows[row, :early, columns],
            alignment=coarse.alignment[row, :early],
            coarse_interaction=coarse.interaction[row, :early],
            loop=refine.loop[row, :late],
            help=refine.help[row, :late],
            refine_interaction=refine.interaction[row, :late],
        )
        for row, tokens, early, late, columns in _parts(batch)
    }


def _signals(
    teacher: Any,
    batch: TrainingBatch,
    passed: ForwardPass,
    anchors: Mapping[str, Tensor],
    heads: PooledHeads,
    margin_scale: float,
    minimum_keys: int,
) -> tuple[CoarseSignals, RefineSignals]:
    if not passed.records:
        return no_signals(batch.slots)
    assert passed.final_residual is not None  # a pass with records has it
    targets, foils = batch.pair()
    return phase_signals(
        teacher,
        passed.records,
        heads,
        batch.slots,
        anchors=torch.stack([anchors[name] for name in batch.examples]),
        gradients=margin_gradient(
            teacher, passed.final_residual, targets[..., None], foils[..., None]
        ),
        margin_scale=margin_scale,
        minimum_keys=minimum_keys,
    )


def _parts(batch: TrainingBatch) -> Iterator[tuple[int, slice, int, int, slice]]:
    """Row, its part of the predicted tokens, its numbers of slots, its columns."""
    first = 0
    for row, (sequence, columns) in enumerate(zip(batch.sequences, batch.key_columns())):
        last = first + len(sequence.predicting)
        yield row, slice(first, last), len(sequence.early), len(sequence.refine), columns
        first = last

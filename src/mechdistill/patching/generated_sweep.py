"""Patching while the model writes: the paper's own read-out.

Clean and corrupted prompt are each continued greedily, every head's row and output remembered by
step. Then the corrupted prompt is continued again with some heads replaced, step by step, by those
of the clean run (denoise), and the other way round (noise). Phase 1 patches the steps of the
donor's early window; phase 2 those from its first refinement position to the end of its reasoning
(from its first clause, if it has none).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mechdistill.models.recorded import Recorded, patched_greedy, record_greedy
from mechdistill.models.tap import Site
from mechdistill.patching.decision_sweep import SITES
from mechdistill.patching.pairs import Pair
from mechdistill.traces.parse import Trace

Parse = Callable[[str, Sequence[int]], Trace]
"""Example id and generated ids -> trace."""


@dataclass(frozen=True)
class Side:
    """One prompt's own run, recorded, and its trace, parsed."""

    run: Recorded
    trace: Trace


@dataclass(frozen=True)
class PatchedRun:
    """What one condition wrote.

    Args:
        condition: index into the sweep's conditions.
        tokens: generated ids.
    """

    site: Site
    direction: str
    condition: int
    tokens: tuple[int, ...]


def record_sides(
    model: Any,
    pairs: Sequence[Pair],
    parse: Parse,
    *,
    max_new_tokens: int,
    eos_id: int,
    pad_id: int,
) -> dict[str, tuple[Side, Side]]:
    """Clean and corrupted side of each pair, by example id."""
    clean, corrupted = (
        record_greedy(model, prompts, max_new_tokens=max_new_tokens, eos_id=eos_id, pad_id=pad_id)
        for prompts in (
            [pair.clean_prompt for pair in pairs],
            [pair.corrupted_prompt for pair in pairs],
        )
    )
    return {
        pair.example: (
            Side(one, parse(pair.example, one.tokens)),
            Side(other, parse(pair.example, other.tokens)),
        )
        for pair, one, other in zip(pairs, clean, corrupted, strict=True)
    }


def patched_steps(donor: Trace, phase: int) -> range:
    """Steps at which the donor's heads are put in; empty if it has no such window."""
    if phase == 1:
        return range(len(donor.early))
    if donor.late_start < 0:
        return range(0)
    start = min([r.query for r in donor.refine], default=donor.late_start - 1)
    prompt_end = donor.prompt_length - 1
    return range(start - prompt_end, donor.reasoning_end - 1 - prompt_end)


def sweep_generated(
    model: Any,
    clean: Side,
    corrupted: Side,
    phase: int,
    masks: Tensor,
    *,
    max_new_tokens: int,
    stop_ids: frozenset[int],
    batch_size: int,
) -> Iterator[PatchedRun]:
    """All conditions of one example, both sites and both directions.

    Nothing is run in a direction whose donor has no window to give.

    Args:
        masks: heads of each condition [C, L, H].
        stop_ids: tokens that end a run.
        batch_size: conditions run together.
    """
    for direction, donor, recipient in (
        ("denoise", clean, corrupted),
        ("noise", corrupted, clean),
    ):
        steps = patched_steps(donor.trace, phase)
        if not steps:
            continue
        for site in SITES:
            for start in range(0, len(masks), batch_size):
                rows = patched_greedy(
                    model,
                    recipient.run,
                    donor.run,
                    site,
                    masks[start : start + batch_size],
                    steps,
                    max_new_tokens=max_new_tokens,
                    stop_ids=stop_ids,
                )
                for index, tokens in enumerate(rows):
                    yield PatchedRun(site, direction, start + index, tuple(tokens))

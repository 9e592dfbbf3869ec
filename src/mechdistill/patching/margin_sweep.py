"""Patching on the teacher-forced trace: the margin at the trace's decision events.

The clean trace is forced upon both prompts (see `mechdistill.patching.decision_sweep`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mechdistill.models.tap import Site
from mechdistill.patching.decision_sweep import (
    SITES,
    ForcedPair,
    sweep_decisions,
    sweep_prompt_patterns,
)
from mechdistill.patching.pairs import Pair, margin_metric, phase_events

PROMPT_SITE = "pattern_prompt"
"""Patterns at every prompt position and at the event."""


@dataclass(frozen=True)
class EventEffects:
    """Margins in logits at one decision event.

    Args:
        event: its number among the phase's events of the trace.
        metric: the name of its margin, see `margin_metric`.
        clean, corrupted: without patching.
        patched: [sites, directions, conditions], in the order of the sweep's sites and DIRECTIONS.
    """

    example: str
    event: int
    metric: str
    clean: float
    corrupted: float
    patched: NDArray[np.float32]


def sweep_margins(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
    sites: Sequence[Site] = SITES,
) -> list[EventEffects]:
    """Margins at every event of the phase under every condition.

    Events whose decision the model does not take on the clean prompt (margin <= 0) are left out:
    there is nothing to restore or to disturb.

    Args:
        masks: heads of each condition [C, L, H].
        branches_per_pass: patched positions that are run together.
        sites: what of the heads is replaced: the first axis of each effect's `patched`.
    """
    forced = _forced(pairs, phase)
    if not forced:
        return []
    margins = sweep_decisions(
        model, forced, masks, pad_id=pad_id, branches_per_pass=branches_per_pass, sites=sites
    )
    return _taken(event_effects(_named_events(pairs, phase), margins))


def sweep_prompts(
    model: Any,
    pairs: Sequence[Pair],
    phase: int,
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
) -> list[EventEffects]:
    """As `sweep_margins`, with patterns replaced at every prompt position as well as at the event.

    Returns:
        effects whose `patched` is [1, directions, conditions], the site being PROMPT_SITE.
    """
    forced = _forced(pairs, phase)
    if not forced:
        return []
    margins = sweep_prompt_patterns(
        model, forced, masks, pad_id=pad_id, branches_per_pass=branches_per_pass
    )
    return _taken(event_effects(_named_events(pairs, phase), margins))


def event_effects(events: Sequence[tuple[str, int, str]], margins: Tensor) -> list[EventEffects]:
    """Effects from a sweep's margins.

    Args:
        events: example, number and metric of each decision, E in all.
        margins: [sites, directions, E, 1 + conditions], the unpatched ones first.
    """
    table = margins.numpy()
    return [
        EventEffects(
            *event,
            clean=float(table[0, 1, i, 0]),
            corrupted=float(table[0, 0, i, 0]),
            patched=table[:, :, i, 1:],
        )
        for i, event in enumerate(events)
    ]


def _forced(pairs: Sequence[Pair], phase: int) -> list[ForcedPair]:
    """Tokens and events of the pairs that have an event of the phase."""
    return [
        ForcedPair(pair.trace.tokens, pair.corrupted, pair.trace.prompt_length, events)
        for pair in pairs
        if (events := phase_events(pair.trace, phase))
    ]


def _named_events(pairs: Sequence[Pair], phase: int) -> list[tuple[str, int, str]]:
    """Example, number and metric of every event of the phase, in the order of the sweep."""
    return [
        (pair.example, number, margin_metric(event))
        for pair in pairs
        for number, event in enumerate(phase_events(pair.trace, phase))
    ]


def _taken(effects: Sequence[EventEffects]) -> list[EventEffects]:
    return [effect for effect in effects if effect.clean > 0]

"""What a student trains on: token sequences with the positions that carry each loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdistill.traces.parse import RefinePosition, Trace


@dataclass(frozen=True)
class TrainingSequence:
    """One sequence. Methods that change the data (parts of a trace, several traces, inserted
    tokens) make other sequences; everything behind them stays as it is.

    All positions index `tokens`. Position p carries the loss of token p + 1.
    """

    example: str
    tokens: tuple[int, ...]
    predicting: tuple[int, ...]
    """Positions with a token loss."""
    weights: tuple[float, ...]
    """Weight of each in the token mean."""
    teacher_rows: tuple[int, ...]
    """Row of each in the teacher's cached distributions of the example; -1: the teacher gave none
    there, token supervision only."""
    early: tuple[int, ...] = ()
    """Query positions of phase 1, in the order of the cached signals."""
    refine: tuple[RefinePosition, ...] = ()
    """Refinement positions of phase 2, in the order of the cached signals."""
    groups: tuple[int, ...] = ()
    """Group of each token, in which its attention is compared with that of a model of another
    tokenizer, or -1; empty: every token is one by itself."""


def whole_trace(trace: Trace) -> TrainingSequence:
    """The teacher's whole trace behind its prompt.

    Every token of the trace is predicted, none of the prompt's.
    """
    predicting = tuple(range(trace.prompt_length - 1, len(trace.tokens) - 1))
    return TrainingSequence(
        example=trace.example,
        tokens=tuple(trace.tokens),
        predicting=predicting,
        weights=(1.0,) * len(predicting),
        teacher_rows=tuple(range(len(predicting))),
        early=tuple(trace.early),
        refine=decidable(trace.refine),
    )


def decidable(positions: Sequence[RefinePosition]) -> tuple[RefinePosition, ...]:
    """R(x) of Eq. 6: refinement positions with both a kept and a rejected mention before them.

    At the others the loop-back difference is a mean over nothing.
    """
    return tuple(at for at in positions if at.shortlist and at.near_miss)


def usable(trace: Trace) -> bool:
    """Whether a trace trains students: it has an answer that could be parsed, and reasoning."""
    return trace.status == "ok" and len(trace.tokens) > trace.prompt_length

"""Which of several rationales a student learns from: right, unlike each other, and not too hard.

The three filters of MoRSD as functions of tables and tokens. A rationale is known by its example
and its draw.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mechdistill.distil.likelihood import token_losses
from mechdistill.distil.sequences import TrainingSequence
from mechdistill.traces.parse import Trace

GRAM = 3
"""Tokens of an n-gram by which rationales are compared."""


@dataclass(frozen=True)
class Candidate:
    """One rationale. `difficulty`: RD of `difficulties`."""

    example: str
    draw: int
    tokens: tuple[int, ...]
    """Of the reasoning alone."""
    f1: float
    """Of its label list against the gold labels."""
    difficulty: float

    @property
    def key(self) -> tuple[float, str, int]:
        """The order in which rationales are preferred; equals by name."""
        return self.difficulty, self.example, self.draw


def set_f1(answer: Collection[Hashable], gold: Collection[Hashable]) -> float:
    """F1 of one label set; 0 where either is empty."""
    hits = len(set(answer) & set(gold))
    return 2 * hits / (len(set(answer)) + len(set(gold))) if hits else 0.0


def jaccard(first: Sequence[int], second: Sequence[int]) -> float:
    """Shared n-grams over all n-grams of two token sequences; 1 where neither has one."""
    a, b = (
        {tuple(tokens[i : i + GRAM]) for i in range(len(tokens) - GRAM + 1)}
        for tokens in (first, second)
    )
    return len(a & b) / len(a | b) if a | b else 1.0


def difficulties(
    model: Any, traces: Sequence[Trace], pad_id: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Perplexity of each trace's label list behind its reasoning, and behind the prompt alone.

    PPL(a | c) = exp(-1/|a| sum_t log p(a_t | c, a_<t)), a being everything behind the reasoning.
    RD = PPL(a | q, r) / PPL(a | q): below 1, the reasoning helps the model to the answer.

    Args:
        model: the student before it is trained.
        traces: with a label list.
        pad_id: of the tokenizer.
    """
    behind = [answer_behind_reasoning(trace) for trace in traces]
    alone = [answer_alone(trace) for trace in traces]
    # the same answer to the same prompt is read once
    distinct = list(dict.fromkeys(alone))
    values = dict(zip(distinct, _perplexities(model, distinct, pad_id)))
    return _perplexities(model, behind, pad_id), np.array([values[of] for of in alone])


def answer_behind_reasoning(trace: Trace) -> TrainingSequence:
    """Prompt, reasoning and label list; only the list is predicted."""
    return _answer(trace.example, trace.tokens, trace.reasoning_end)


def answer_alone(trace: Trace) -> TrainingSequence:
    """Prompt and label list; only the list is predicted."""
    tokens = (*trace.tokens[: trace.prompt_length], *trace.tokens[trace.reasoning_end :])
    return _answer(trace.example, tokens, trace.prompt_length)


def lists_its_answer(trace: Trace) -> bool:
    """Whether the reasoning spells the label list out before it is asked for (a leak)."""
    listed = [m for m in trace.mentions if m.segment == "answer"]
    if not listed:
        return False
    wanted = trace.tokens[listed[0].start : listed[-1].end]
    reasoning = trace.tokens[trace.prompt_length : trace.reasoning_end]
    return any(
        reasoning[i : i + len(wanted)] == wanted for i in range(len(reasoning) - len(wanted) + 1)
    )


def right(candidates: Sequence[Candidate], least_f1: float, keep_min: int) -> list[Candidate]:
    """Those whose labels are right enough, and of every example at least `keep_min`, best first."""
    kept = []
    for own in _by_example(candidates).values():
        ranked = sorted(own, key=lambda c: (-c.f1, c.draw))
        enough = sum(candidate.f1 >= least_f1 for candidate in ranked)
        kept += ranked[: max(enough, keep_min)]
    return kept


def unlike(candidates: Sequence[Candidate], most_alike: float) -> list[Candidate]:
    """Of every example those that are not too much like one kept before, easiest first."""
    kept = []
    for own in _by_example(candidates).values():
        chosen: list[Candidate] = []
        for candidate in sorted(own, key=lambda c: c.key):
            if all(jaccard(candidate.tokens, c.tokens) <= most_alike for c in chosen):
                chosen.append(candidate)
        kept += chosen
    return kept


def easy(
    candidates: Sequence[Candidate], share: float, mode: Literal["lowest", "band"]
) -> list[Candidate]:
    """The easiest share of all rationales, at least one.

    "band" first drops the easiest tenth, which may give the answer away, and those that make the
    answer less likely (RD >= 1); the share is taken of what is left.
    """
    ranked = sorted(candidates, key=lambda c: c.key)
    if mode == "band":
        ranked = [c for c in ranked[len(ranked) // 10 :] if c.difficulty < 1]
    return ranked[: max(1, round(share * len(ranked)))]


def _by_example(candidates: Sequence[Candidate]) -> Mapping[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(candidate.example, []).append(candidate)
    return found


def _answer(example: str, tokens: Sequence[int], start: int) -> TrainingSequence:
    predicting = tuple(range(start - 1, len(tokens) - 1))
    return TrainingSequence(
        example, tuple(tokens), predicting, (1.0,) * len(predicting), (-1,) * len(predicting)
    )


def _perplexities(
    model: Any, sequences: Sequence[TrainingSequence], pad_id: int
) -> npt.NDArray[np.float64]:
    return np.array([np.exp(of.mean()) for of in token_losses(model, sequences, pad_id)])

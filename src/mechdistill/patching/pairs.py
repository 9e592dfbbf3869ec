"""Clean and corrupted prompts of equal length under one and the same trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.tokenizer import encode_prompt
from mechdistill.data.twins import Twin
from mechdistill.errors import InputError
from mechdistill.traces.parse import Event, Trace

CORRUPTION = {1: "K1", 2: "K2"}
"""Phase -> the twin that takes away what the phase reads."""
SHAM = "K0"
"""The twin that changes words of no importance: patching it should do nothing."""
DESIGN = (("K1", 1), ("K2", 2), (SHAM, 1), (SHAM, 2))
"""Twins, and the phase whose decisions are read on them."""


@dataclass(frozen=True)
class Pair:
    """A clean prompt, its corrupted twin, and the clean trace.

    Args:
        trace: the teacher's own trace on the clean prompt, parsed.
        corrupted_prompt: token ids, as many as the clean prompt has.
    """

    trace: Trace
    twin: str
    corrupted_prompt: tuple[int, ...]

    @property
    def example(self) -> str:
        """Id of the example."""
        return self.trace.example

    @property
    def clean_prompt(self) -> tuple[int, ...]:
        """Token ids of the clean prompt."""
        return self.trace.tokens[: self.trace.prompt_length]

    @property
    def corrupted(self) -> tuple[int, ...]:
        """The clean trace forced upon the corrupted prompt."""
        return self.corrupted_prompt + self.trace.tokens[self.trace.prompt_length :]


def make_pairs(
    traces: Sequence[Trace],
    twins: Mapping[tuple[str, str], Twin],
    twin: str,
    tokenizer: PreTrainedTokenizerFast,
) -> list[Pair]:
    """Pairs of the traces that have a twin of this kind (one at least), in the traces' order.

    Args:
        twins: by example and kind.
        twin: the kind.

    Raises:
        InputError: a twin has another length than its prompt, or no trace has a twin.
    """
    pairs: list[Pair] = []
    for trace in traces:
        if (trace.example, twin) not in twins:
            continue
        tokens = tuple(encode_prompt(tokenizer, twins[trace.example, twin].prompt))
        if len(tokens) != trace.prompt_length:
            raise InputError(
                f"twin {twin} of {trace.example} has {len(tokens)} tokens, "
                f"the prompt {trace.prompt_length}",
                "make data/twins.parquet and teacher/traces.parquet again",
            )
        pairs.append(Pair(trace, twin, tokens))
    if not pairs:
        raise InputError(
            f"none of {len(traces)} notes for patching has a twin {twin}",
            "make data/twins.parquet again",
        )
    return pairs


def phase_events(trace: Trace, phase: int) -> list[Event]:
    """Decisions of a phase: regions in the early words (1); options and departures (2)."""
    kinds = {"region"} if phase == 1 else {"within", "departure"}
    return [event for event in trace.events if event.kind in kinds and event.foils]


def margin_metric(event: Event) -> str:
    """Under which name the margin of an event is averaged.

    `margin` is that of the phase's own decision (the region; the option within it). Departures from
    the near-miss follow the option already written, so they stand apart: `margin_departure` in the
    reasoning, `margin_answer` in the answer list.
    """
    if event.kind != "departure":
        return "margin"
    return "margin_answer" if event.segment == "answer" else "margin_departure"


def is_eligible(trace: Trace, example: Example) -> bool:
    """Whether a clean trace shows both phases.

    It names an anchor region in its early words, and it has a refinement position with an earlier
    mention of a label that it keeps and of one that it rejects, where it takes the target (greedy:
    the clean margin is positive there).
    """
    named = {m.code for m in trace.mentions if m.kind == "region" and m.segment == "early"}
    contrasts = any(
        position.shortlist
        and position.near_miss
        and trace.tokens[position.query + 1] == position.target
        for position in trace.refine
    )
    return bool(named & set(example.regions)) and contrasts


def eligible_traces(traces: Sequence[Trace], examples: Sequence[Example]) -> list[Trace]:
    """The traces of these examples that can be patched, see `is_eligible`.

    Raises:
        InputError: there is none.
    """
    by_name = {example.example: example for example in examples}
    own = [trace for trace in traces if trace.example in by_name]
    found = [trace for trace in own if is_eligible(trace, by_name[trace.example])]
    if not found:
        raise InputError(
            f"none of {len(own)} teacher traces for patching names a true region early and then "
            "takes a code against its near-miss",
            "train the teacher for longer (teacher.training.steps), or give data.splits.patching "
            "more notes",
        )
    return found

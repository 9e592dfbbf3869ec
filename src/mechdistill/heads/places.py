"""Where in a trace the heads are read: positions of its tokens, found once per example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.token_spans import covering, encode_continuation
from mechdistill.data.tokenizer import prompt_spans
from mechdistill.data.units import cut, lexicon
from mechdistill.errors import InputError
from mechdistill.traces.parse import RefinePosition, Trace


@dataclass(frozen=True)
class Places:
    """Positions index the tokens of prompt and trace, unpadded.

    A region, label, finding or cue of several tokens is all of them: attention on it is the sum.
    """

    example: str
    tokens: tuple[int, ...]
    prompt_length: int
    early: tuple[int, ...]
    """Q_early(x): positions that predict the tokens of the early window."""
    region_events: tuple[int, ...]
    """Those among them at which the trace picks a region."""
    refine: tuple[RefinePosition, ...]
    """R(x)."""
    sinks: tuple[int, ...]
    """Position 0 and special tokens: they collect attention that reads nothing."""
    anchors: tuple[tuple[int, ...], ...]
    """Token ids of the anchors A(x), as within a text: names of the gold labels' regions."""
    anchor_mentions: tuple[int, ...]
    """Tokens of the anchors in the prompt."""
    evidence: tuple[int, ...]
    """Tokens of the findings that support the gold labels."""
    cues: tuple[tuple[int, ...], ...]
    """For each refinement position, tokens of the cue that decides its clause; empty if its clause
    is about no gold label."""
    gold: tuple[int, ...]
    """For each gold label, the first token in which it differs from its near-miss."""
    near: tuple[int, ...]
    """For each near-miss, likewise."""

    def mentions(self) -> tuple[int, ...]:
        """Positions of all shortlist and near-miss mentions, in order."""
        return tuple(sorted({p for at in self.refine for p in (*at.shortlist, *at.near_miss)}))


def places_of(trace: Trace, example: Example, space: LabelSpace, tokenizer: Any) -> Places:
    """Find the places of one trace.

    Args:
        trace: the trace that is read, of any model with this tokenizer.
        example: the example that it belongs to.
        space: the label space.
        tokenizer: the one that wrote the trace.

    Raises:
        InputError: the trace does not start with the example's prompt.
    """
    spans = _token_spans(trace, example, tokenizer)
    cues = [covering(spans, cue) for cue in example.cues]
    early = set(trace.early)
    pairs = [
        first_difference(_ids(tokenizer, space.label(a).text), _ids(tokenizer, space.label(b).text))
        for a, b in zip(example.gold, example.near, strict=True)
    ]
    regions = set(example.regions)
    named = [
        (unit.start, unit.end)
        for unit in cut(example.prompt, lexicon(tokenizer, space))
        if unit.kind == "region" and unit.key in regions
    ]
    special = set(tokenizer.all_special_ids)
    return Places(
        example=trace.example,
        tokens=trace.tokens,
        prompt_length=trace.prompt_length,
        early=trace.early,
        region_events=tuple(sorted({e.query for e in trace.events if e.kind == "region"} & early)),
        refine=trace.refine,
        sinks=tuple(p for p, token in enumerate(trace.tokens) if p == 0 or token in special),
        anchors=anchor_ids(example, space, tokenizer),
        anchor_mentions=_covered(spans, named),
        evidence=_covered(spans, example.evidence),
        cues=tuple(_cue_of(at.clause, trace, example, cues) for at in trace.refine),
        gold=tuple(a for a, _ in pairs),
        near=tuple(b for _, b in pairs),
    )


def all_places(
    traces: Sequence[Trace], examples: Iterable[Example], space: LabelSpace, tokenizer: Any
) -> list[Places]:
    """Places of each trace, in order.

    Raises:
        InputError: a trace's example is missing or another one.
    """
    known: Mapping[str, Example] = {example.example: example for example in examples}
    missing = [trace.example for trace in traces if trace.example not in known]
    if missing:
        raise InputError(
            f"a trace belongs to example {missing[0]}, which the examples do not hold",
            "make examples and traces again from the same study",
        )
    return [places_of(trace, known[trace.example], space, tokenizer) for trace in traces]


def anchor_ids(example: Example, space: LabelSpace, tokenizer: Any) -> tuple[tuple[int, ...], ...]:
    """Token ids of each anchor of an example as within a text, in problem order."""
    return tuple(
        _ids(tokenizer, space.region(region).name) for region in dict.fromkeys(example.regions)
    )


def first_difference(first: Sequence[int], second: Sequence[int]) -> tuple[int, int]:
    """The tokens at which two labels part, given their common beginning.

    Codes of one category share their first tokens; a margin of those would be zero.

    Raises:
        ValueError: one label begins with the whole other one.
    """
    for a, b in zip(first, second):
        if a != b:
            return a, b
    raise ValueError(f"{list(first)} and {list(second)} part at no token")


def _token_spans(trace: Trace, example: Example, tokenizer: Any) -> list[tuple[int, int]]:
    """Character span of each prompt token; empty for special ones."""
    ids, spans = prompt_spans(tokenizer, example.prompt)
    if tuple(ids) != tuple(trace.tokens[: len(ids)]):
        raise InputError(
            f"the trace of example {trace.example} does not begin with that example's prompt",
            "examples, tokenizer and traces are of different runs: make them again together",
        )
    return spans


def _covered(spans: Sequence[tuple[int, int]], wanted: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """Tokens that overlap one of the character spans."""
    found = {position for start, end in wanted for position in covering(spans, (start, end))}
    return tuple(sorted(found))


def _cue_of(
    clause: int, trace: Trace, example: Example, cues: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    named = {mention.code for mention in trace.mentions if mention.clause == clause}
    for code, cue in zip(example.gold, cues, strict=True):
        if code in named:
            return cue
    return ()


def _ids(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Token ids of a text behind a space: as it is written in prompts and traces."""
    return encode_continuation(tokenizer, f" {text}")

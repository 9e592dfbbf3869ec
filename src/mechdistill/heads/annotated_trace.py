"""A prompt and the reasoning on it, with what matters in them pointed out in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mechdistill.data.places_in_text import (
    Part,
    Place,
    Span,
    check_seam,
    listed,
    occurrences,
    spans_of,
)
from mechdistill.data.token_spans import continuation_spans, covering, encode_continuation
from mechdistill.data.tokenizer import prompt_spans
from mechdistill.errors import InputError
from mechdistill.heads.places import Places, first_difference
from mechdistill.traces.parse import RefinePosition


@dataclass(frozen=True)
class Contrast:
    """One decision of the reasoning: a label against its near-miss.

    Args:
        label, near_miss: as they are written within a text.
        at: what the reasoning writes at its refinement positions: each token of it is predicted by
            the token before. None: the token at which `label` parts from `near_miss`, wherever the
            reasoning writes `label` after it has mentioned both.
        cue: words of the prompt that decide between the two.
    """

    label: str
    near_miss: str
    at: Place | Sequence[Place] | None = None
    cue: Place | Sequence[Place] = ()


@dataclass(frozen=True)
class AnnotatedTrace:
    """What `score_prompts` reads.

    A place is a string (whole words, as written, every occurrence), a compiled regular expression,
    or [start, end) in the characters of prompt + reasoning. Strings and patterns of `anchors`,
    `evidence` and `Contrast.cue` are looked for in the prompt, all others in the reasoning. A place
    of several tokens is all of them.

    Args:
        prompt: the whole text before the reasoning, chat template included.
        reasoning: what follows, white space at its beginning included.
        anchors: the dominant signal (phase 1). A string need not stand in the prompt; where none
            does, scores with the anchor space `context` are missing.
        evidence: findings that support it; the baseline `attention_evidence` counts attention on
            them.
        early: the early window: its number of tokens, or a place in the reasoning.
        contrasts: decisions (phase 2).
        shortlist, ruled_out: mentions that the reasoning keeps and rejects. None: mentions of the
            contrasts' labels and near-misses in the reasoning.
        name: of the example; None: its number.
    """

    prompt: str
    reasoning: str
    anchors: Place | Sequence[Place] = ()
    evidence: Place | Sequence[Place] = ()
    early: int | Place = 20
    contrasts: Contrast | Sequence[Contrast] = ()
    shortlist: Place | Sequence[Place] | None = None
    ruled_out: Place | Sequence[Place] | None = None
    name: str | None = None


def places_of_annotated(trace: AnnotatedTrace, tokenizer: Any, name: str) -> Places:
    """The positions that the annotations stand for.

    Args:
        trace: prompt, reasoning and annotations.
        tokenizer: a fast one.
        name: of the example.

    Raises:
        InputError: a text is empty, a place is not there or empty, a label and its near-miss are
            one and the same, or neither anchors nor contrasts are given.
    """
    if not trace.reasoning.strip():
        raise InputError(f"{name} has no reasoning", "give the text that follows the prompt")
    check_seam(trace.prompt, trace.reasoning, name)
    if not listed(trace.anchors) and not _contrasts(trace):
        raise InputError(
            f"{name} has neither anchors nor contrasts",
            "give anchors for CoarseScore, contrasts for RefineScore, or both",
        )
    return _Annotations(trace, tokenizer, name).places()


class _Annotations:
    """One trace's texts as tokens, and where its annotations lie in them."""

    def __init__(self, trace: AnnotatedTrace, tokenizer: Any, name: str) -> None:
        self._trace, self._tokenizer, self._name = trace, tokenizer, name
        self._text = trace.prompt + trace.reasoning
        begin = len(trace.prompt)
        self._prompt = Part("the prompt", 0, begin)
        self._reasoning = Part("the reasoning", begin, len(self._text))
        ids, spans = prompt_spans(tokenizer, trace.prompt)
        written, behind = continuation_spans(tokenizer, trace.reasoning)
        self._length = len(ids)
        self._tokens = (*ids, *written)
        self._spans = [*spans, *((begin + start, begin + end) for start, end in behind)]
        self._kept = self._mentions(trace.shortlist, [c.label for c in _contrasts(trace)])
        self._rejected = self._mentions(trace.ruled_out, [c.near_miss for c in _contrasts(trace)])

    def places(self) -> Places:
        trace, special = self._trace, set(self._tokenizer.all_special_ids)
        mentioned = {
            position
            for place in listed(trace.anchors)
            for span in self._anchor_mentions(place)
            for position in covering(self._spans, span)
        }
        contrasts = _contrasts(trace)
        pairs = [self._pair(contrast) for contrast in contrasts]
        refine = [
            (position, contrast)
            for number, (contrast, pair) in enumerate(zip(contrasts, pairs))
            for position in self._refine(contrast, number, pair)
        ]
        if refine and not any(at.shortlist and at.near_miss for at, _ in refine):
            raise InputError(
                f"{self._name}: no refinement position has mentions of both kinds before it",
                "point at them by shortlist and ruled_out, or at later positions by Contrast.at",
            )
        early = self._early()
        return Places(
            example=self._name,
            tokens=self._tokens,
            prompt_length=self._length,
            early=early,
            region_events=self._anchors_written(early),
            refine=tuple(position for position, _ in refine),
            sinks=tuple(p for p, token in enumerate(self._tokens) if p == 0 or token in special),
            anchors=tuple(self._ids(text) for text in self._anchor_texts()),
            anchor_mentions=tuple(sorted(mentioned)),
            evidence=self._positions(trace.evidence, "evidence", self._prompt),
            cues=tuple(
                self._positions(contrast.cue, "cue", self._prompt) for _, contrast in refine
            ),
            gold=tuple(target for target, _ in pairs),
            near=tuple(foil for _, foil in pairs),
        )

    def _anchor_texts(self) -> list[str]:
        """Each anchor once, however often it is pointed at."""
        texts: list[str] = []
        for place in listed(self._trace.anchors):
            if isinstance(place, str):
                texts.append(place.strip())
            else:
                texts += [self._text[a:b].strip() for a, b in self._anchor_spans(place)]
        if not all(texts):
            raise InputError(f"{self._name}: an anchor is empty", "name at least one word")
        return list(dict.fromkeys(texts))

    def _anchor_spans(self, place: Place) -> list[Span]:
        return spans_of(place, self._text, f"{self._name}, anchor", self._prompt)

    def _anchor_mentions(self, place: Place) -> list[Span]:
        if isinstance(place, str):
            return [span for _, span in occurrences(self._trace.prompt, [place])]
        return [span for span in self._anchor_spans(place) if span[1] <= self._prompt.end]

    def _anchors_written(self, early: tuple[int, ...]) -> tuple[int, ...]:
        """Early positions that predict the first token of an anchor."""
        begin = self._reasoning.start
        first = {
            covering(self._spans, (begin + start, begin + end))[0] - 1
            for _, (start, end) in occurrences(self._trace.reasoning, self._anchor_texts())
        }
        return tuple(sorted(first & set(early)))

    def _early(self) -> tuple[int, ...]:
        window, last = self._trace.early, len(self._tokens) - 1
        if not isinstance(window, int):
            return self._queries(window, "early window")
        if window < 1:
            raise InputError(
                f"{self._name}: an early window of {window} tokens is empty",
                "give at least 1 token, or a place in the reasoning",
            )
        return tuple(range(self._length - 1, min(last, self._length - 1 + window)))

    def _pair(self, contrast: Contrast) -> tuple[int, int]:
        """The tokens at which label and near-miss part."""
        for what, text in (("label", contrast.label), ("near-miss", contrast.near_miss)):
            if not text.strip():
                raise InputError(f"{self._name}: a {what} is empty", "name at least one word")
        try:
            return first_difference(self._ids(contrast.label), self._ids(contrast.near_miss))
        except ValueError as error:
            raise InputError(
                f"{self._name}: {contrast.label!r} and {contrast.near_miss!r} part at no token",
                "give two texts of which neither begins with the other; add what follows it",
            ) from error

    def _refine(
        self, contrast: Contrast, number: int, pair: tuple[int, int]
    ) -> Iterator[RefinePosition]:
        if contrast.at is not None:
            found = [(query, *pair) for query in self._queries(contrast.at, "refinement")]
        else:
            found = list(self._departures(contrast))
        for query, target, foil in found:
            yield RefinePosition(
                query=query,
                target=target,
                foil=foil,
                clause=number,
                shortlist=_before(self._kept, query),
                near_miss=_before(self._rejected, query),
            )

    def _departures(self, contrast: Contrast) -> Iterator[tuple[int, int, int]]:
        """Query, target and foil wherever the label is written behind mentions of both."""
        text, some = self._trace.reasoning, False
        mentioned: set[str] = set()
        pair = {contrast.label, contrast.near_miss}
        for words, (start, end) in occurrences(text, list(pair)):
            if words == contrast.label and mentioned == pair:
                some = True
                yield self._departure(text[:start] + contrast.near_miss + text[end:])
            mentioned.add(words)
        if not some:
            raise InputError(
                f"{self._name}: the reasoning writes {contrast.label!r} nowhere behind a mention "
                f"of it and one of {contrast.near_miss!r}",
                "say where it decides (Contrast.at) and where both were mentioned (shortlist, "
                "ruled_out)",
            )

    def _departure(self, other: str) -> tuple[int, int, int]:
        """Query, target and foil where the reasoning parts from another one."""
        actual = self._tokens[self._length :]
        instead, _ = continuation_spans(self._tokenizer, other)
        at = next(i for i, (a, b) in enumerate(zip(actual, instead)) if a != b)
        return self._length + at - 1, actual[at], instead[at]

    def _mentions(
        self, given: Place | Sequence[Place] | None, labels: Sequence[str]
    ) -> list[tuple[int, ...]]:
        """Tokens of each mention."""
        if given is not None:
            what = f"{self._name}, mention"
            part = self._reasoning
            spans = [s for p in listed(given) for s in spans_of(p, self._text, what, part)]
        else:
            every = [t for c in _contrasts(self._trace) for t in (c.label, c.near_miss)]
            begin = self._reasoning.start
            spans = [
                (begin + start, begin + end)
                for words, (start, end) in occurrences(self._trace.reasoning, every)
                if words in labels
            ]
        return [covering(self._spans, span) for span in spans]

    def _queries(self, places: Place | Sequence[Place], what: str) -> tuple[int, ...]:
        """Positions that predict the tokens of places in the reasoning."""
        positions = self._positions(places, what, self._reasoning)
        if not positions:
            raise InputError(f"{self._name}: the {what} has no place", "give one, or leave it out")
        if positions[0] == 0:
            raise InputError(
                f"{self._name}, {what}: nothing predicts the first token of the prompt",
                "point at places in the reasoning",
            )
        return tuple(position - 1 for position in positions)

    def _positions(self, places: Place | Sequence[Place], what: str, part: Part) -> tuple[int, ...]:
        what = f"{self._name}, {what}"
        spans = [s for place in listed(places) for s in spans_of(place, self._text, what, part)]
        return tuple(sorted({p for span in spans for p in covering(self._spans, span)}))

    def _ids(self, text: str) -> tuple[int, ...]:
        """Token ids of a text behind a space: as it is written in prompts and traces."""
        return encode_continuation(self._tokenizer, f" {text}")


def _contrasts(trace: AnnotatedTrace) -> list[Contrast]:
    given = trace.contrasts
    return [given] if isinstance(given, Contrast) else list(given)


def _before(mentions: Sequence[tuple[int, ...]], query: int) -> tuple[int, ...]:
    """Tokens of the mentions that have ended at the query position."""
    ended = (tokens for tokens in mentions if tokens[-1] < query)
    return tuple(sorted({position for tokens in ended for position in tokens}))

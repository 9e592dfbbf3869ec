"""Decision events: the tokens of a trace at which the model leaves the path of an alternative.

Where a trace names a region, a label, or an option that stands for one, everything that could have
been named there is written as the tokenizer would write it, and a prefix trie is made of the token
paths (`mechdistill.traces.trie`). An event stands at each token that leaves a path, whatever the
tokens are: it may be the first of a name or the one behind it, and one token may be several events.
What is left tells the kind:

*region*: candidates of other regions; *within*: candidates of the same region; *departure*: a
near-miss named earlier, that is a label of the same region that the trace's own answer does not
list, where the label that is picked is listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.traces.parse import Clause, Trace, clauses_of
from mechdistill.traces.trie import Trie, forks
from mechdistill.traces.written import Written

Kind = Literal["region", "within", "departure"]
KINDS: tuple[Kind, ...] = ("region", "within", "departure")
Form = Literal["region", "label", "option"]
Segment = Literal["reasoning", "answer"]
SEGMENTS: tuple[Segment, ...] = ("reasoning", "answer")
Family = tuple[str, str]
"""Kind and segment of decisions that are looked at together."""
FAMILIES: tuple[Family, ...] = tuple((kind, segment) for segment in SEGMENTS for kind in KINDS)


@dataclass(frozen=True)
class DecisionEvent:
    """One decision at one token.

    Args:
        form: what is named there.
        query: position whose logits decide, in prompt + trace.
        target: the token that was taken.
        foils: tokens of the alternatives of this kind that are left, sorted; one at least.
        code: the label that is picked; the region where a region is named.
        region: its region.
        foil_codes: the alternatives, sorted.
        repeat: earlier names in this segment with events of this kind that pick the same (a region
            event: the same region). The first, 0, decides; what follows may copy it.
        earlier: of a departure: tokens of the near-miss's earlier mentions.
    """

    kind: Kind
    segment: Segment
    form: Form
    query: int
    target: int
    foils: tuple[int, ...]
    code: str
    region: str
    foil_codes: tuple[str, ...]
    repeat: int = 0
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class Alternative:
    """What could be named: its region, and whether it was named before and is not kept."""

    region: str
    in_context: bool
    near_miss: bool = False


def events_of_path(
    paths: Mapping[str, Sequence[int]],
    taken: Sequence[int],
    alternatives: Mapping[str, Alternative],
    picked: str,
) -> Iterator[tuple[int, Kind, tuple[int, ...], tuple[str, ...]]]:
    """Events of one naming.

    Args:
        paths: tokens of each alternative, of the one that is picked too.
        taken: tokens of the trace, from the same place on.
        alternatives: by key, as the paths.
        picked: key of the one that is named.

    Yields:
        place in the path, kind, tokens and keys of the alternatives left, in the order of places
        and kinds.
    """
    own = alternatives[picked].region
    for fork in forks(Trie.of(paths), taken):
        for kind in KINDS:
            left = {
                token: [key for key in keys if _is_left(alternatives[key], kind, own)]
                for token, keys in fork.left.items()
            }
            foils = tuple(sorted(token for token, keys in left.items() if keys))
            if foils:
                codes = sorted(key for keys in left.values() for key in keys)
                yield fork.depth, kind, foils, tuple(codes)


def decision_events(
    trace: Trace, example: Example, tokenizer: Any, space: LabelSpace
) -> list[DecisionEvent]:
    """All decision events of a trace, in the order of its tokens.

    A name that is not among the example's candidates is no pick. Labels that a clause puts side by
    side before its verdict are listed, not chosen: none of them departs from the other there.
    """
    own = trace.tokens[trace.prompt_length :]
    body = own[: len(own) - (len(own) > 0 and own[-1] == tokenizer.eos_token_id)]
    written = Written.of(body, trace.prompt_length, tokenizer, space)
    events: list[DecisionEvent] = []
    picked_before: Counter[tuple[str, ...]] = Counter()
    for naming in _namings(written, trace, example, space):
        events += [replace(event, repeat=picked_before[_pick(event)]) for event in naming]
        picked_before.update({_pick(event) for event in naming})
    return sorted(events, key=lambda event: event.query)


def _is_left(alternative: Alternative, kind: Kind, own: str) -> bool:
    if kind == "departure":
        return alternative.near_miss and alternative.region == own
    return alternative.in_context and (alternative.region != own) == (kind == "region")


def _pick(event: DecisionEvent) -> tuple[str, str, str]:
    picked = event.region if event.kind == "region" else event.code
    return event.kind, event.segment, picked


def _namings(
    written: Written, trace: Trace, example: Example, space: LabelSpace
) -> Iterator[list[DecisionEvent]]:
    """The events of each name that the trace writes, in order."""
    units = written.units
    answer_at = next((u for u, unit in enumerate(units) if unit.kind == "answer"), len(units))
    clauses = clauses_of(units, answer_at)
    chosen_at = {c.verdict_at + 1: c for c in clauses if c.verdict_at >= 0}
    listed = {u for c in clauses for u in range(c.start, max(c.verdict_at, c.start))}
    candidates = {code: Alternative(space.label(code).region, True) for code in example.candidates}
    regions = {a.region: Alternative(a.region, True) for a in candidates.values()}
    earlier: dict[str, list[int]] = {}  # tokens of each label's mentions so far
    for u, unit in enumerate(units):
        segment: Segment = "answer" if u >= answer_at else "reasoning"
        if unit.kind == "region" and unit.key in regions:
            names = {region: space.region(region).name for region in regions}
            yield _named(written, u, "region", segment, unit.key, names, regions, {})
        elif unit.kind == "option" and u in chosen_at and unit.key in chosen_at[u].pair:
            picked = chosen_at[u].pair[unit.key]
            known = _with_near_misses(candidates, picked, earlier, trace.answer, space)
            options = _options(chosen_at[u])
            yield _named(written, u, "option", segment, picked, options, known, earlier)
        elif unit.kind == "label":
            if unit.key in candidates:
                near = {} if u in listed else earlier
                known = _with_near_misses(candidates, unit.key, near, trace.answer, space)
                alone = written.text_of(u) == unit.key
                texts = {code: code if alone else space.label(code).text for code in known}
                yield _named(written, u, "label", segment, unit.key, texts, known, earlier)
            if segment == "reasoning":
                earlier.setdefault(unit.key, []).extend(range(*written.bounds[u]))


def _options(clause: Clause) -> dict[str, str]:
    """Option of each code; the later one where a clause gives a code two."""
    return {code: option for option, code in clause.pair.items()}


def _with_near_misses(
    candidates: Mapping[str, Alternative],
    picked: str,
    earlier: Mapping[str, Sequence[int]],
    answer: Sequence[str],
    space: LabelSpace,
) -> dict[str, Alternative]:
    """The candidates, and labels named earlier that the answer does not list, if it lists the pick.

    A label that is named earlier need not be among the candidates.
    """
    known = dict(candidates)
    if picked in answer:
        for code in earlier:
            if code not in answer:
                known[code] = Alternative(space.label(code).region, code in candidates, True)
    return known


def _named(
    written: Written,
    index: int,
    form: Form,
    segment: Segment,
    picked: str,
    texts: Mapping[str, str],
    alternatives: Mapping[str, Alternative],
    earlier: Mapping[str, Sequence[int]],
) -> list[DecisionEvent]:
    """Events at a unit; `texts` are what the alternatives would be written as."""
    keys = [key for key in texts if key in alternatives]
    if picked not in keys:
        return []
    start, taken, tokens = written.paths(index, [texts[key] for key in keys])
    paths = dict(zip(keys, tokens, strict=True))
    return [
        DecisionEvent(
            kind=kind,
            segment=segment,
            form=form,
            query=start + depth - 1,
            target=taken[depth],
            foils=foils,
            code=picked,
            region=alternatives[picked].region,
            foil_codes=codes,
            earlier=_all_of(earlier, codes) if kind == "departure" else (),
        )
        for depth, kind, foils, codes in events_of_path(paths, taken, alternatives, picked)
    ]


def _all_of(places: Mapping[str, Sequence[int]], codes: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted(place for code in codes for place in places.get(code, ())))

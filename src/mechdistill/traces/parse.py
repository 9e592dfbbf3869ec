"""Parse a trace into segments, mentions, decision events, refinement positions and answer.

Works on token ids alone, and on any text that a student may write: what does not parse is marked
in `Trace.status`, never dropped, never an error. Positions index z = prompt + trace, without
padding; a query position q is the one whose logits predict token q + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.notes import MAX_PROBLEMS
from mechdistill.data.prompts import ANSWER, OPTIONS, REVIEW, VERDICT
from mechdistill.data.tokenizer import decode_trace, encode_prompt

Segment = Literal["early", "late", "answer"]
Verdict = Literal["kept", "rejected", "open"]


@dataclass(frozen=True)
class Mention:
    """A region or label named by the trace, [start, end) in z, with its clause's verdict."""

    kind: Literal["region", "label"]
    code: str
    start: int
    end: int
    segment: Segment
    clause: int  # -1 outside clauses
    verdict: Verdict


@dataclass(frozen=True)
class Event:
    """A decision token: region, within-region option, or departure from the near-miss.

    `target` is the gold choice for region and within, the kept code for departure.
    """

    kind: Literal["region", "within", "departure"]
    segment: Literal["reasoning", "answer"]
    query: int
    target: int
    foils: tuple[int, ...]
    target_code: str
    foil_codes: tuple[str, ...]
    clause: int


@dataclass(frozen=True)
class RefinePosition:
    """A query of contrastive reasoning, with the clause's pair and the earlier mentions.

    `target` and `foil` are the token ids at which gold and near-miss differ given the words so
    far: option letters at the verdict, labels after the letter. `shortlist` and `near_miss` are
    token positions before `query` of label mentions that the trace itself keeps and rejects.
    """

    query: int
    target: int
    foil: int
    clause: int
    shortlist: tuple[int, ...]
    near_miss: tuple[int, ...]


@dataclass(frozen=True)
class Trace:
    """A parsed trace.

    `early`: queries of the early window. `late_start`: first token of the first clause, -1 if
    there is none. `reasoning_end`: first token after the reasoning.
    """

    example: str
    split: str
    tokens: tuple[int, ...]
    prompt_length: int
    text: str
    status: str
    answer: tuple[str, ...]
    early: tuple[int, ...]
    late_start: int
    reasoning_end: int
    mentions: tuple[Mention, ...]
    events: tuple[Event, ...]
    refine: tuple[RefinePosition, ...]


OK = "ok"
"""Status of a trace whose answer, clauses and verdicts all parse."""


@dataclass(frozen=True)
class _Alphabet:
    """Token ids that carry structure."""

    regions: dict[int, str]
    labels: dict[int, str]
    numbers: dict[int, int]
    options: frozenset[int]
    home: dict[str, str]  # label code -> region code
    review: int
    answer: int
    verdict: int
    stop: int
    eos: int


@dataclass(frozen=True)
class _Clause:
    """A clause [start, end) of z: its pair by option letter, and where the verdict falls."""

    index: int
    start: int
    end: int
    region: str
    pair: dict[int, int]  # option id -> label id, of the options named before the verdict
    verdict_at: int  # -1 if there is none
    kept: int  # label id, -1 if no label follows the verdict

    def rejected(self) -> int:
        """Label id of the pair that the verdict leaves, -1 if that is not one label."""
        others = [label for label in self.pair.values() if label != self.kept]
        return others[0] if self.kept in self.pair.values() and len(others) == 1 else -1


def parse_trace(
    example: Example,
    trace_ids: Sequence[int],
    tokenizer: PreTrainedTokenizerFast,
    space: LabelSpace,
    early_tokens: int,
) -> Trace:
    """Parse the tokens that a model wrote after the example's prompt.

    Args:
        trace_ids: generated tokens, <eos> included if it was emitted; no padding.
        early_tokens: width of the early window, which ends before the first clause.
    """
    alphabet = _alphabet(tokenizer, space)
    prompt = encode_prompt(tokenizer, example.prompt)
    z = [*prompt, *trace_ids]
    start = len(prompt)
    written = len(z) - (bool(trace_ids) and z[-1] == alphabet.eos)
    answer_at = _first(z, alphabet.answer, start, written)
    clauses = _clauses(z, start, answer_at, alphabet)
    late_start = clauses[0].start if clauses else -1
    early_end = min(late_start if clauses else answer_at, start + early_tokens)
    answer = _answer_positions(z, answer_at, written, alphabet)
    mentions = _mentions(z, start, late_start, answer, clauses, alphabet)
    return Trace(
        example=example.example,
        split=example.split,
        tokens=tuple(z),
        prompt_length=start,
        text=decode_trace(tokenizer, trace_ids),
        status=_status(written < len(z), answer, clauses),
        answer=tuple(dict.fromkeys(alphabet.labels[z[p]] for p in answer)),
        early=tuple(range(start - 1, early_end - 1)),
        late_start=late_start,
        reasoning_end=answer_at,
        mentions=tuple(mentions),
        events=(
            *_region_events(z, start, early_end, example, alphabet),
            *_clause_events(z, clauses, example, alphabet),
            *_answer_events(z, answer, example, alphabet),
        ),
        refine=tuple(_refine_positions(clauses, mentions, example, alphabet)),
    )


@lru_cache(maxsize=8)
def _alphabet(tokenizer: PreTrainedTokenizerFast, space: LabelSpace) -> _Alphabet:
    ids = tokenizer.get_vocab()

    def id_of(token: str) -> int:
        return int(ids[token])

    return _Alphabet(
        regions={id_of(region.name): region.code for region in space.regions},
        labels={id_of(label.text): label.code for label in space.labels},
        numbers={id_of(f"#{index + 1}"): index for index in range(MAX_PROBLEMS)},
        options=frozenset(map(id_of, OPTIONS)),
        home={label.code: label.region for label in space.labels},
        review=id_of(REVIEW),
        answer=id_of(ANSWER),
        verdict=id_of(VERDICT),
        stop=id_of("."),
        eos=int(tokenizer.eos_token_id),
    )


def _first(z: Sequence[int], token: int, start: int, end: int) -> int:
    """First position of a token in [start, end), `end` if there is none."""
    return next((p for p in range(start, end) if z[p] == token), end)


def _clauses(z: Sequence[int], start: int, end: int, alphabet: _Alphabet) -> list[_Clause]:
    """Clauses before the answer: each from a problem number to the next one.

    They begin after the review's heading; without a heading, at the first number whose region is
    followed by a label.
    """
    heading = _first(z, alphabet.review, start, end)
    numbers = [p for p in range(start, end) if z[p] in alphabet.numbers]
    if heading < end:
        starts = [p for p in numbers if p > heading]
    else:
        opened = (p for p in numbers if p + 2 < end and z[p + 2] in alphabet.labels)
        first = next(opened, end)
        starts = [p for p in numbers if p >= first]
    ends = [*starts[1:], end][: len(starts)]
    return [
        _clause(z, index, begin, finish, alphabet)
        for index, (begin, finish) in enumerate(zip(starts, ends, strict=True))
    ]


def _clause(z: Sequence[int], index: int, start: int, end: int, alphabet: _Alphabet) -> _Clause:
    verdict = _first(z, alphabet.verdict, start, end)
    pair: dict[int, int] = {}
    for p in range(start, verdict - 1):
        if z[p] in alphabet.labels and z[p + 1] in alphabet.options:
            pair.setdefault(z[p + 1], z[p])
    decided = verdict + 2 < end and z[verdict + 1] in alphabet.options
    kept = z[verdict + 2] if decided and z[verdict + 2] in alphabet.labels else -1
    region = alphabet.regions.get(z[start + 1], "") if start + 1 < end else ""
    return _Clause(index, start, end, region, pair, verdict if kept >= 0 else -1, kept)


def _answer_positions(z: Sequence[int], start: int, end: int, alphabet: _Alphabet) -> list[int]:
    """Positions of the labels from the answer's heading to its full stop."""
    stop = _first(z, alphabet.stop, start, end)
    return [p for p in range(start, stop) if z[p] in alphabet.labels]


def _status(finished: bool, answer: Sequence[int], clauses: Sequence[_Clause]) -> str:
    """The first thing that is wrong with a trace, "ok" if nothing is."""
    if not finished:
        return "unfinished"
    if not answer:
        return "no answer"
    if not clauses:
        return "no clause"
    if any(clause.verdict_at < 0 for clause in clauses):
        return "clause without verdict"
    if any(len(set(clause.pair.values())) < 2 for clause in clauses):
        return "clause without pair"
    if any(clause.rejected() < 0 for clause in clauses):
        return "verdict outside the pair"
    return OK


def _mentions(
    z: Sequence[int],
    start: int,
    late_start: int,
    answer: Sequence[int],
    clauses: Sequence[_Clause],
    alphabet: _Alphabet,
) -> list[Mention]:
    kept_regions = {clause.region for clause in clauses if clause.kept >= 0}
    early_end = late_start if clauses else (answer[0] if answer else len(z))
    found = []
    for p in range(start, early_end):
        if code := alphabet.regions.get(z[p]):
            verdict: Verdict = "kept" if code in kept_regions else "open"
            found.append(Mention("region", code, p, p + 1, "early", -1, verdict))
        elif code := alphabet.labels.get(z[p]):
            found.append(Mention("label", code, p, p + 1, "early", -1, "open"))
    for clause in clauses:
        for p in range(clause.start, clause.end):
            if code := alphabet.regions.get(z[p]):
                verdict = "kept" if code in kept_regions else "open"
                found.append(Mention("region", code, p, p + 1, "late", clause.index, verdict))
            elif code := alphabet.labels.get(z[p]):
                verdict = _verdict(z[p], clause)
                found.append(Mention("label", code, p, p + 1, "late", clause.index, verdict))
    for p in answer:
        found.append(Mention("label", alphabet.labels[z[p]], p, p + 1, "answer", -1, "kept"))
    return found


def _verdict(label: int, clause: _Clause) -> Verdict:
    if clause.kept < 0:
        return "open"
    if label == clause.kept:
        return "kept"
    return "rejected" if label in clause.pair.values() else "open"


def _region_events(
    z: Sequence[int], start: int, end: int, example: Example, alphabet: _Alphabet
) -> list[Event]:
    """One event a problem: after its first early number comes its region."""
    ids = {code: token for token, code in alphabet.regions.items()}
    listed = {alphabet.home[code] for code in example.candidates}
    decoys = sorted(listed - set(example.regions))
    first: dict[int, int] = {}
    for p in range(start, end - 1):
        if z[p] in alphabet.numbers:
            first.setdefault(alphabet.numbers[z[p]], p)
    return [
        Event(
            kind="region",
            segment="reasoning",
            query=query,
            target=ids[example.regions[problem]],
            foils=tuple(ids[code] for code in decoys),
            target_code=example.regions[problem],
            foil_codes=tuple(decoys),
            clause=-1,
        )
        for problem, query in first.items()
        if problem < len(example.regions)
    ]


def _clause_events(
    z: Sequence[int], clauses: Sequence[_Clause], example: Example, alphabet: _Alphabet
) -> list[Event]:
    """Within: the letter after the verdict, by gold. Departure: the label after that letter."""
    events = []
    for clause in clauses:
        gold, near = _gold_and_other(clause, example, alphabet)
        if gold:
            letters = {label: option for option, label in clause.pair.items()}
            target, foil = letters[gold], letters[near]
            codes = alphabet.labels[gold], alphabet.labels[near]
            query = clause.verdict_at
            events.append(
                Event(
                    "within", "reasoning", query, target, (foil,), codes[0], codes[1:], clause.index
                )
            )
        rejected = clause.rejected()
        if rejected >= 0:
            codes = alphabet.labels[clause.kept], alphabet.labels[rejected]
            query = clause.verdict_at + 1
            event = Event(
                "departure",
                "reasoning",
                query,
                clause.kept,
                (rejected,),
                codes[0],
                codes[1:],
                clause.index,
            )
            events.append(event)
    return events


def _gold_and_other(clause: _Clause, example: Example, alphabet: _Alphabet) -> tuple[int, int]:
    """Label ids of the clause's gold code and of its other one; (0, 0) unless the pair is such."""
    labels = list(dict.fromkeys(clause.pair.values()))
    gold = [label for label in labels if alphabet.labels[label] in example.gold]
    if clause.verdict_at < 0 or len(labels) != 2 or len(gold) != 1:
        return 0, 0
    return gold[0], labels[1 - labels.index(gold[0])]


def _answer_events(
    z: Sequence[int], answer: Sequence[int], example: Example, alphabet: _Alphabet
) -> list[Event]:
    """Departures in the answer list: a gold code written, against its near-miss."""
    ids = {code: token for token, code in alphabet.labels.items()}
    near = dict(zip(example.gold, example.near, strict=True))
    events = []
    for p in answer:
        code = alphabet.labels[z[p]]
        if code in near:
            foil = near[code]
            events.append(
                Event("departure", "answer", p - 1, z[p], (ids[foil],), code, (foil,), -1)
            )
    return events


def _refine_positions(
    clauses: Sequence[_Clause],
    mentions: Sequence[Mention],
    example: Example,
    alphabet: _Alphabet,
) -> list[RefinePosition]:
    """Two a clause whose pair holds one gold code: before the letter, and before the label."""
    positions = []
    for clause in clauses:
        gold, near = _gold_and_other(clause, example, alphabet)
        if not gold:
            continue
        letters = {label: option for option, label in clause.pair.items()}
        for query, target, foil in (
            (clause.verdict_at, letters[gold], letters[near]),
            (clause.verdict_at + 1, gold, near),
        ):
            before = [m for m in mentions if m.kind == "label" and m.start < query]
            positions.append(
                RefinePosition(
                    query=query,
                    target=target,
                    foil=foil,
                    clause=clause.index,
                    shortlist=tuple(m.start for m in before if m.verdict == "kept"),
                    near_miss=tuple(m.start for m in before if m.verdict == "rejected"),
                )
            )
    return positions

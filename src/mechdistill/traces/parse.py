"""Parse a trace into segments, mentions, decision events, refinement positions and answer.

Works on the ids that a model wrote, of any fast tokenizer, and on any text that a student may
write: what does not parse is marked in `Trace.status`, never dropped, never an error. The text is
cut into units (a region, a label, a number, an option, a heading); what is found there is carried
over to the ids that spell it. Positions index z = prompt + trace, without padding; a query
position q is the one whose logits predict token q + 1.

A decision between texts of several tokens falls at the first token at which its target and some
alternative part, given what they share (see `Written.choice`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import decode_trace, encode_prompt
from mechdistill.data.units import Unit
from mechdistill.traces.written import Choice, Written

Segment = Literal["early", "late", "answer"]
Verdict = Literal["kept", "rejected", "open"]


@dataclass(frozen=True)
class Mention:
    """A region or label that the trace names, its tokens [start, end), and its clause's verdict."""

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

    `target` is the gold choice for region and within, the kept code for departure. `target` and
    `foils` are the tokens at which the choices part at `query`; `foil_codes` are the choices that
    part there, `deeper` counts those that share the target's token and part from it later.
    """

    kind: Literal["region", "within", "departure"]
    segment: Literal["reasoning", "answer"]
    query: int
    target: int
    foils: tuple[int, ...]
    target_code: str
    foil_codes: tuple[str, ...]
    clause: int
    deeper: int = 0


@dataclass(frozen=True)
class RefinePosition:
    """A query of contrastive reasoning, with the clause's pair and the earlier mentions.

    `target` and `foil` are the token ids at which gold and near-miss differ given the words so
    far: at the option after the verdict, and at the label after the option. `shortlist` and
    `near_miss` are the tokens of all label mentions that end before `query` and that the trace
    itself keeps and rejects: all tokens of a mention, so attention on a mention is the sum over
    them, and a mean over keys counts each.
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
class Clause:
    """A clause [start, end) of the units: its pair by option, and where the verdict falls."""

    index: int
    start: int
    end: int
    region: str
    pair: dict[str, str]  # option -> code, of the options named before the verdict
    verdict_at: int  # -1 if there is none
    kept: str  # code, "" if no label follows the verdict

    def rejected(self) -> str:
        """Code of the pair that the verdict leaves, "" if that is not one code."""
        others = [code for code in self.pair.values() if code != self.kept]
        return others[0] if self.kept in self.pair.values() and len(others) == 1 else ""


def parse_trace(
    example: Example,
    trace_ids: Sequence[int],
    tokenizer: PreTrainedTokenizerFast,
    space: LabelSpace,
    early_tokens: int,
) -> Trace:
    """Parse the tokens that a model wrote after the example's prompt.

    Args:
        trace_ids: generated tokens, the one that ends a text included if it was written; no
            padding.
        early_tokens: width of the early window, which ends before the first clause.
    """
    prompt = encode_prompt(tokenizer, example.prompt)
    start = len(prompt)
    finished = len(trace_ids) > 0 and trace_ids[-1] == tokenizer.eos_token_id
    body = trace_ids[: len(trace_ids) - finished]
    written = Written.of(body, start, tokenizer, space)
    units = written.units
    answer_at = _first(units, "answer", 0, len(units))
    clauses = clauses_of(units, answer_at)
    late_start = written.position(clauses[0].start) if clauses else -1
    reasoning_end = written.position(answer_at)
    early_end = min(late_start if clauses else reasoning_end, start + early_tokens)
    answer = _answer_units(units, answer_at)
    mentions = list(_mentions(written, answer, clauses))
    return Trace(
        example=example.example,
        split=example.split,
        tokens=(*prompt, *trace_ids),
        prompt_length=start,
        text=decode_trace(tokenizer, trace_ids),
        status=_status(finished, answer, clauses),
        answer=tuple(dict.fromkeys(units[u].key for u in answer)),
        early=tuple(range(start - 1, early_end - 1)),
        late_start=late_start,
        reasoning_end=reasoning_end,
        mentions=tuple(mentions),
        events=(
            *_region_events(written, early_end, example, space),
            *_clause_events(written, clauses, example, space),
            *_answer_events(written, answer, example, space),
        ),
        refine=tuple(_refine_positions(written, clauses, mentions, example, space)),
    )


def _first(units: Sequence[Unit], kind: str, start: int, end: int) -> int:
    """First unit of a kind in [start, end), `end` if there is none."""
    return next((u for u in range(start, end) if units[u].kind == kind), end)


def clauses_of(units: Sequence[Unit], end: int) -> list[Clause]:
    """Clauses before the answer: each from a problem number to the next one.

    They begin after the review's heading; without a heading, at the first number whose region is
    followed by a label.
    """
    heading = _first(units, "review", 0, end)
    numbers = [u for u in range(end) if units[u].kind == "number"]
    if heading < end:
        starts = [u for u in numbers if u > heading]
    else:
        opened = (u for u in numbers if u + 2 < end and units[u + 2].kind == "label")
        first = next(opened, end)
        starts = [u for u in numbers if u >= first]
    ends = [*starts[1:], end][: len(starts)]
    return [
        _clause(units, index, begin, finish)
        for index, (begin, finish) in enumerate(zip(starts, ends, strict=True))
    ]


def _clause(units: Sequence[Unit], index: int, start: int, end: int) -> Clause:
    verdict = _first(units, "verdict", start, end)
    pair: dict[str, str] = {}
    for u in range(start, verdict - 1):
        if units[u].kind == "label" and units[u + 1].kind == "option":
            pair.setdefault(units[u + 1].key, units[u].key)
    decided = verdict + 2 < end and units[verdict + 1].kind == "option"
    kept = units[verdict + 2].key if decided and units[verdict + 2].kind == "label" else ""
    named = start + 1 < end and units[start + 1].kind == "region"
    region = units[start + 1].key if named else ""
    return Clause(index, start, end, region, pair, verdict if kept else -1, kept)


def _answer_units(units: Sequence[Unit], start: int) -> list[int]:
    """The labels from the answer's heading to its full stop."""
    stop = _first(units, "stop", start, len(units))
    return [u for u in range(start, stop) if units[u].kind == "label"]


def _status(finished: bool, answer: Sequence[int], clauses: Sequence[Clause]) -> str:
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
    if any(not clause.rejected() for clause in clauses):
        return "verdict outside the pair"
    return OK


def _mentions(
    written: Written, answer: Sequence[int], clauses: Sequence[Clause]
) -> Iterator[Mention]:
    kept_regions = {clause.region for clause in clauses if clause.kept}
    units = written.units
    early_end = clauses[0].start if clauses else (answer[0] if answer else len(units))
    for u in range(early_end):
        if units[u].kind == "region":
            verdict: Verdict = "kept" if units[u].key in kept_regions else "open"
            yield Mention("region", units[u].key, *written.bounds[u], "early", -1, verdict)
        elif units[u].kind == "label":
            yield Mention("label", units[u].key, *written.bounds[u], "early", -1, "open")
    for clause in clauses:
        for u in range(clause.start, clause.end):
            where = written.bounds[u]
            if units[u].kind == "region":
                verdict = "kept" if units[u].key in kept_regions else "open"
                yield Mention("region", units[u].key, *where, "late", clause.index, verdict)
            elif units[u].kind == "label":
                verdict = _verdict(units[u].key, clause)
                yield Mention("label", units[u].key, *where, "late", clause.index, verdict)
    for u in answer:
        yield Mention("label", units[u].key, *written.bounds[u], "answer", -1, "kept")


def _verdict(code: str, clause: Clause) -> Verdict:
    if not clause.kept:
        return "open"
    if code == clause.kept:
        return "kept"
    return "rejected" if code in clause.pair.values() else "open"


def _region_events(
    written: Written, early_end: int, example: Example, space: LabelSpace
) -> Iterator[Event]:
    """One event a problem: after its first early number comes its region."""
    listed = {space.label(code).region for code in example.candidates}
    decoys = sorted(listed - set(example.regions))
    seen: set[int] = set()
    for u in range(len(written.units) - 1):
        problem = int(written.units[u].key) - 1 if written.units[u].kind == "number" else -1
        if not 0 <= problem < len(example.regions) or problem in seen:
            continue
        seen.add(problem)
        region = example.regions[problem]
        choice = written.choice(
            u + 1, space.region(region).name, [space.region(code).name for code in decoys]
        )
        if choice and choice.query + 1 < early_end:
            yield _event("region", "reasoning", choice, region, decoys, -1)


def _clause_events(
    written: Written, clauses: Sequence[Clause], example: Example, space: LabelSpace
) -> Iterator[Event]:
    """Within: the option after the verdict, by gold. Departure: the label after that option."""
    for clause in clauses:
        gold, near = _gold_and_other(clause, example)
        if gold:
            choice = _option_choice(written, clause, gold, near)
            if choice:
                yield _event("within", "reasoning", choice, gold, [near], clause.index)
        rejected = clause.rejected()
        if rejected:
            at = clause.verdict_at + 2
            choice = _label_choice(written, at, clause.kept, rejected, space)
            if choice:
                kept = clause.kept
                yield _event("departure", "reasoning", choice, kept, [rejected], clause.index)


def _answer_events(
    written: Written, answer: Sequence[int], example: Example, space: LabelSpace
) -> Iterator[Event]:
    """Departures in the answer list: a gold code written, against its near-miss."""
    near = dict(zip(example.gold, example.near, strict=True))
    for u in answer:
        code = written.units[u].key
        if code in near:
            choice = _label_choice(written, u, code, near[code], space)
            if choice:
                yield _event("departure", "answer", choice, code, [near[code]], -1)


def _refine_positions(
    written: Written,
    clauses: Sequence[Clause],
    mentions: Sequence[Mention],
    example: Example,
    space: LabelSpace,
) -> Iterator[RefinePosition]:
    """Two a clause whose pair holds one gold code: at the option, and at the label."""
    for clause in clauses:
        gold, near = _gold_and_other(clause, example)
        if not gold:
            continue
        for choice in (
            _option_choice(written, clause, gold, near),
            _label_choice(written, clause.verdict_at + 2, gold, near, space),
        ):
            if choice is None:
                continue
            before = [m for m in mentions if m.kind == "label" and m.end <= choice.query]
            yield RefinePosition(
                query=choice.query,
                target=choice.target,
                foil=choice.foils[0],
                clause=clause.index,
                shortlist=_tokens(before, "kept"),
                near_miss=_tokens(before, "rejected"),
            )


def _gold_and_other(clause: Clause, example: Example) -> tuple[str, str]:
    """The clause's gold code and its other one; two "" unless the pair is such."""
    codes = list(dict.fromkeys(clause.pair.values()))
    gold = [code for code in codes if code in example.gold]
    if clause.verdict_at < 0 or len(codes) != 2 or len(gold) != 1:
        return "", ""
    return gold[0], codes[1 - codes.index(gold[0])]


def _option_choice(written: Written, clause: Clause, gold: str, near: str) -> Choice | None:
    options = {code: option for option, code in clause.pair.items()}
    return written.choice(clause.verdict_at + 1, options[gold], [options[near]])


def _label_choice(
    written: Written, at: int, target: str, foil: str, space: LabelSpace
) -> Choice | None:
    """Labels are compared as the trace writes the one at this unit: in full, or the code alone."""
    if written.text_of(at) == written.units[at].key:
        return written.choice(at, target, [foil])
    return written.choice(at, space.label(target).text, [space.label(foil).text])


def _event(
    kind: Literal["region", "within", "departure"],
    segment: Literal["reasoning", "answer"],
    choice: Choice,
    target_code: str,
    foil_codes: Sequence[str],
    clause: int,
) -> Event:
    return Event(
        kind=kind,
        segment=segment,
        query=choice.query,
        target=choice.target,
        foils=tuple(choice.foils.values()),
        target_code=target_code,
        foil_codes=tuple(foil_codes[index] for index in choice.foils),
        clause=clause,
        deeper=choice.deeper,
    )


def _tokens(mentions: Sequence[Mention], verdict: Verdict) -> tuple[int, ...]:
    """Tokens of the mentions with a verdict, in order."""
    of = {p for m in mentions if m.verdict == verdict for p in range(m.start, m.end)}
    return tuple(sorted(of))

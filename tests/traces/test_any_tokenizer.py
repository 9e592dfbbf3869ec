"""Traces in sub-word tokens: the same reading as in whole words, and events by brute force."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.examples import Example
from mechdistill.data.labels import Label, LabelSpace, Region
from mechdistill.data.token_spans import token_spans
from mechdistill.data.tokenizer import encode_prompt, encode_trace
from mechdistill.traces.parse import OK, parse_trace
from mechdistill.traces.written import Written
from tests.small_tokenizers import byte_fallback, byte_level


@pytest.fixture(scope="module", params=["byte_level", "coarse", "byte_fallback"])
def pieces(request, examples):
    texts = [text for example in examples for text in (example.prompt, example.reference)]
    if request.param == "byte_fallback":
        return byte_fallback(texts, size=250)
    return byte_level(texts, size=300 if request.param == "byte_level" else 600)


@pytest.fixture(scope="module")
def read(pieces, space):
    """Parse a text, or ids, of a trace."""

    def parse(example: Example, text, early_tokens: int = 400):
        ids = text
        if isinstance(text, str):
            ids = encode_trace(pieces, text, example.prompt)
        return parse_trace(example, ids, pieces, space, early_tokens)

    return parse


def text_at(pieces, tokens, start: int, end: int) -> str:
    return pieces.decode(list(tokens[start:end])).strip()


def test_a_trace_says_the_same_in_pieces_as_in_whole_words(examples, parse, read, pieces) -> None:
    for example in examples:
        whole, cut = parse(example, example.reference + " <eos>"), read(example, example.reference)
        assert cut.status == whole.status == OK
        assert cut.text == whole.text
        assert cut.answer == whole.answer
        said = [(m.kind, m.code, m.segment, m.clause, m.verdict) for m in whole.mentions]
        assert [(m.kind, m.code, m.segment, m.clause, m.verdict) for m in cut.mentions] == said
        decided = [(e.kind, e.segment, e.target_code, e.clause) for e in whole.events]
        assert [(e.kind, e.segment, e.target_code, e.clause) for e in cut.events] == decided
        assert [r.clause for r in cut.refine] == [r.clause for r in whole.refine]


def test_mentions_are_all_the_tokens_that_spell_them(examples, read, pieces, space) -> None:
    for example in examples:
        trace = read(example, example.reference)
        for m in trace.mentions:
            name = space.region(m.code).name if m.kind == "region" else space.label(m.code).text
            assert text_at(pieces, trace.tokens, m.start, m.end) == name
        heading = trace.late_start, trace.reasoning_end
        assert [text_at(pieces, trace.tokens, p, p + 9).lstrip("#")[:1] for p in heading[:1]] == [
            "1"
        ]
        assert text_at(pieces, trace.tokens, heading[1], heading[1] + 9).startswith("Ans")


def test_shortlist_and_near_misses_are_whole_mentions_before_the_query(examples, read) -> None:
    for example in examples:
        trace = read(example, example.reference)
        for at in trace.refine:
            for verdict, found in (("kept", at.shortlist), ("rejected", at.near_miss)):
                whole = [
                    range(m.start, m.end)
                    for m in trace.mentions
                    if m.kind == "label" and m.verdict == verdict and m.end <= at.query
                ]
                assert found == tuple(sorted(p for mention in whole for p in mention))
                assert found


def forks(pieces, context: str, texts: list[str], behind: str) -> tuple[int, dict[int, int], int]:
    """Brute force: write every choice into the whole trace and compare the token lists.

    Returns:
        first token where some choice parts from the first one, the tokens of those that part
        there, and how many part later.
    """
    lists = [
        pieces(context + text + behind, add_special_tokens=False)["input_ids"] for text in texts
    ]
    parted = [
        next(i for i, (a, b) in enumerate(zip(lists[0], other, strict=False)) if a != b)
        for other in lists[1:]
    ]
    first = min(parted)
    here = {i: lists[i + 1][first] for i, place in enumerate(parted) if place == first}
    return first, here, len(parted) - len(here)


def test_events_are_where_the_token_lists_of_all_choices_part(
    examples, read, pieces, space
) -> None:
    for example in examples:
        trace = read(example, example.reference)
        ids = trace.tokens[trace.prompt_length : -1]
        text, spans = token_spans(pieces, ids)
        assert text.strip() == example.reference
        for event in trace.events:
            near = dict(zip(example.gold, example.near, strict=True))
            if event.kind == "region":
                listed = {space.region_of(code).code for code in example.candidates}
                codes = [event.target_code, *sorted(listed - set(example.regions))]
                names = [space.region(code).name for code in codes]
            else:
                codes = [event.target_code, near[event.target_code]]
                names = [space.label(code).text for code in codes]
            if event.kind == "within":
                names = ["(a)", "(b)"] if codes[0] < codes[1] else ["(b)", "(a)"]
            others = codes[1:]
            fork = spans[event.query + 1 - trace.prompt_length][0]
            begin = text.rindex(" " + names[0], 0, fork + len(names[0]) + 1)  # the choice's space
            end = begin + 1 + len(names[0])
            first, here, deeper = forks(pieces, text[: begin + 1], names, text[end:])
            assert event.query == trace.prompt_length + first - 1
            assert event.target == ids[first]
            assert event.foils == tuple(here.values())
            assert event.foil_codes == tuple(others[i] for i in here)
            assert event.deeper == deeper


def test_refinement_positions_are_the_clause_events(examples, read) -> None:
    """In references the gold code is kept, so both are about the same pair at the same tokens."""
    for example in examples:
        trace = read(example, example.reference)
        events = {(e.query, e.target, *e.foils) for e in trace.events if e.clause >= 0}
        assert {(r.query, r.target, r.foil) for r in trace.refine} == events


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" .", ".").replace(" ,", ",").replace(" ;", ";"),
        lambda text: text.replace(" . ", " .\n\n"),
        lambda text: text.replace(" ", "  "),
        lambda text: "\n" + text.replace("(", " (") + "\n",
    ],
)
def test_white_space_changes_nothing_that_is_said(examples, read, pieces, change) -> None:
    for example in examples[:10]:
        plain, changed = read(example, example.reference), read(example, change(example.reference))
        assert changed.status == OK
        assert changed.answer == plain.answer
        assert [(m.code, m.verdict) for m in changed.mentions] == [
            (m.code, m.verdict) for m in plain.mentions
        ]
        assert [(e.kind, e.target_code) for e in changed.events] == [
            (e.kind, e.target_code) for e in plain.events
        ]
        for event in changed.events:
            assert changed.tokens[event.query + 1] == event.target
            assert event.target not in event.foils


def test_a_label_in_other_tokens_than_the_tokenizers_own_still_has_its_event(
    examples, pieces, space, read
) -> None:
    """The code spelled letter by letter: the event stands at the letter that differs."""
    example = next(e for e in examples if len(e.gold) == 1)
    usual = read(example, example.reference)
    code, near = example.gold[0], example.near[0]
    head, tail = example.reference.rsplit(code, 1)
    ids = [
        *encode_trace(pieces, head.rstrip(), example.prompt)[:-1],
        *pieces(" " + code[0], add_special_tokens=False)["input_ids"],
        *(i for c in code[1:] for i in pieces.convert_tokens_to_ids([c])),
        *pieces(tail, add_special_tokens=False)["input_ids"],
        pieces.eos_token_id,
    ]
    trace = read(example, ids)
    assert trace.answer == usual.answer
    answers = [e for e in trace.events if e.segment == "answer"]
    assert len(answers) == 1
    (event,) = answers
    assert trace.tokens[event.query + 1] == event.target
    different = next(i for i, (a, b) in enumerate(zip(code, near, strict=True)) if a != b)
    assert pieces.decode([event.target]).strip() == code[different]
    assert pieces.decode(list(event.foils)).strip().startswith(near[different])


def test_codes_alone_are_mentions_and_compared_as_codes(examples, read, space) -> None:
    for example in examples[:10]:
        text = example.reference.split("Answer:")[0] + "Answer: " + " ; ".join(example.gold) + " ."
        trace = read(example, text)
        assert trace.answer == example.gold
        answers = [e for e in trace.events if e.segment == "answer"]
        assert [e.target_code for e in answers] == list(example.gold)
        for event in answers:
            assert trace.tokens[event.query + 1] == event.target


@pytest.fixture(scope="module")
def forked():
    """Regions whose names share words, one the beginning of another; words of one token each."""
    names = {"A": "renal stone", "B": "renal colic", "C": "renal stone disease", "D": "gout"}
    regions = tuple(Region(code, name, (f"sign {code}",)) for code, name in names.items())
    labels = tuple(
        Label(f"{code}0.{k}", f"{code}0.{k} {cue} {name}", code, cue, "")
        for code, name in names.items()
        for k, cue in enumerate(("mild", "severe"))
    )
    return LabelSpace(regions, labels, (), "invented for the tests")


def test_choices_that_share_the_first_word_part_later(forked) -> None:
    texts = [region.name for region in forked.regions] + ["#1 renal stone . Review:"]
    pieces = byte_level([f" {text}" for text in texts] * 50, size=600)
    names = [region.name for region in forked.regions]

    def choice(target: str, alternatives: list[str], written: str):
        ids = pieces(f" #1 {written} .", add_special_tokens=False)["input_ids"]
        found = Written.of(ids, 100, pieces, forked)
        (at,) = [u for u, unit in enumerate(found.units) if unit.kind == "region"]
        return found.choice(at, target, alternatives), [pieces.decode([i]) for i in ids], ids

    decided, words, ids = choice("renal stone", names[1:], "renal stone")
    place = words.index(" renal")
    assert decided.query == 100 + place - 1
    assert decided.target == ids[place]
    assert {i: pieces.decode([t]) for i, t in decided.foils.items()} == {2: " gout"}
    assert decided.deeper == 2  # renal colic, renal stone disease

    decided, words, ids = choice("renal stone", ["renal colic"], "renal stone")
    assert pieces.decode([decided.target]) == " stone"
    assert decided.query == 100 + words.index(" renal")
    assert [pieces.decode([t]) for t in decided.foils.values()] == [" colic"]

    # one is the beginning of the other: they part at what follows
    decided, words, ids = choice("renal stone", ["renal stone disease"], "renal stone")
    assert decided.query == 100 + words.index(" stone")
    assert pieces.decode([decided.target]) == " ."
    assert [pieces.decode([t]) for t in decided.foils.values()] == [" disease"]

    # the trace has left the shared beginning before the two part
    assert choice("renal stone", ["renal colic"], "gout")[0] is None
    # but takes another branch at the fork itself
    decided, words, ids = choice("renal stone", ["renal colic"], "renal colic")
    assert pieces.decode([decided.target]) == " stone"
    assert choice("gout", ["gout"], "gout")[0] is None


@given(data=st.data())
@hypothesis_settings(max_examples=60)
def test_any_tokens_parse_to_valid_positions(data, examples, read, pieces, space) -> None:
    example = data.draw(st.sampled_from(examples))
    ids = data.draw(st.lists(st.integers(0, len(pieces) - 1), max_size=40))
    if data.draw(st.booleans()):
        reference = encode_trace(pieces, example.reference, example.prompt)
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(reference) - 1))
            new = data.draw(st.lists(st.sampled_from(reference + ids), max_size=2))
            reference[place : place + data.draw(st.integers(0, 2))] = new
            if not reference:
                break
        ids = reference
    trace = read(example, ids, early_tokens=data.draw(st.integers(1, 60)))
    length = len(trace.tokens)
    queries = [*trace.early, *(e.query for e in trace.events), *(r.query for r in trace.refine)]
    assert all(trace.prompt_length - 1 <= query < length for query in queries)
    assert all(event.target not in event.foils for event in trace.events)
    assert all(len(event.foils) == len(event.foil_codes) for event in trace.events)
    assert all(r.target != r.foil for r in trace.refine)
    assert all(trace.prompt_length <= m.start < m.end <= length for m in trace.mentions)
    assert trace.late_start == -1 or trace.prompt_length <= trace.late_start < length
    assert trace.prompt_length <= trace.reasoning_end <= length
    assert set(trace.answer) <= {label.code for label in space.labels}


def test_the_prompt_of_a_trace_is_its_examples(examples, read, pieces) -> None:
    framed = replace(examples[0], prompt="<|begin|>user\n" + examples[0].prompt + "\n")
    trace = read(framed, examples[0].reference)
    assert list(trace.tokens[: trace.prompt_length]) == encode_prompt(pieces, framed.prompt)
    assert trace.status == OK

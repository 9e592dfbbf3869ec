"""Decision events of whole traces: by hand, and by writing each trace anew with another name."""

from dataclasses import replace

import pytest

from mechdistill.data.examples import Example
from mechdistill.data.labels import Label, LabelSpace
from mechdistill.data.tokenizer import encode_prompt, encode_trace
from mechdistill.traces.decision_events import decision_events
from mechdistill.traces.parse import parse_trace
from mechdistill.traces.written import Written
from tests.small_tokenizers import byte_fallback, byte_level


@pytest.fixture(scope="module")
def one(examples):
    """An example with one problem, whose gold code comes second in its pair."""
    return next(e for e in examples if len(e.gold) == 1 and e.gold[0] > e.near[0])


@pytest.fixture(scope="module")
def found(one, parse, tokenizer, space):
    return decision_events(parse(one, one.reference + " <eos>"), one, tokenizer, space)


def chosen(events, kind, segment=None):
    return [
        event
        for event in events
        if event.kind == kind and event.repeat == 0 and segment in (None, event.segment)
    ]


def test_region_is_decided_at_its_name_and_once_more_in_the_answer(found, one, space) -> None:
    first, answer = chosen(found, "region")
    listed = {space.label(code).region for code in one.candidates}
    assert (first.form, answer.form) == ("region", "label")
    assert first.code == answer.region == one.regions[0]
    assert set(first.foil_codes) == listed - {first.code}
    others = {code for code in one.candidates if space.label(code).region != answer.region}
    assert set(answer.foil_codes) == others
    assert (first.segment, answer.segment) == ("reasoning", "answer")


def test_pair_is_read_out_then_one_is_left_at_the_option(found, one) -> None:
    pair = sorted((one.gold[0], one.near[0]))
    assert [e.code for e in chosen(found, "within", "reasoning")] == pair
    departures = chosen(found, "departure")
    assert [(e.form, e.segment) for e in departures] == [
        ("option", "reasoning"),
        ("label", "answer"),
    ]
    for event in departures:
        assert (event.code, event.foil_codes) == (one.gold[0], (one.near[0],))


def test_no_departure_where_a_pair_is_only_listed(found) -> None:
    """The gold code comes second: the near-miss stands before it, and nothing is decided yet."""
    named = [e for e in found if e.form == "label" and e.kind == "within" and e.repeat == 0]
    departures = {e.query for e in found if e.kind == "departure"}
    assert named[1].query not in departures


def test_departure_knows_the_earlier_mentions_of_what_it_leaves(
    found, one, parse, tokenizer, space
) -> None:
    tokens = parse(one, one.reference + " <eos>").tokens
    for event in chosen(found, "departure"):
        said = tokenizer.convert_ids_to_tokens([tokens[p] for p in event.earlier])
        assert said and set(said) == {space.label(one.near[0]).text}
        assert max(event.earlier) <= event.query


def test_what_the_answer_lists_is_no_near_miss(one, parse, tokenizer, space) -> None:
    both = one.reference.replace("Answer:", f"Answer: {space.label(one.near[0]).text} ;")
    events = decision_events(parse(one, both + " <eos>"), one, tokenizer, space)
    assert not [event for event in events if event.kind == "departure"]


def test_names_outside_the_candidates_are_no_picks(one, parse, tokenizer, space) -> None:
    strange = replace(one, candidates=tuple(c for c in one.candidates if c != one.gold[0]))
    events = decision_events(parse(one, one.reference), strange, tokenizer, space)
    assert one.gold[0] not in {e.code for e in events if e.form == "label"}


def test_text_that_is_no_trace_has_no_events(one, parse, tokenizer, space) -> None:
    for text in ("", "Answer:", "=> (a) (a) not", "Review: #1 => (a)"):
        assert decision_events(parse(one, text), one, tokenizer, space) == []


def cut_in_pieces(kind, texts):
    if kind == "byte_fallback":
        return byte_fallback(texts, size=250)
    return byte_level(texts, size=300 if kind == "fine" else 600)


def slow_label_events(example, ids, text, pieces, space):
    """Write the whole trace again with each candidate in place of each label, and compare ids."""
    start = len(encode_prompt(pieces, example.prompt))
    written = Written.of(ids, start, pieces, space)
    found = set()
    for unit in written.units:
        if unit.kind != "label" or unit.key not in example.candidates:
            continue
        own = space.label(unit.key).region
        at: dict[tuple[int, str], tuple[set, set]] = {}
        for code in example.candidates:
            other = (text[: unit.start] + space.label(code).text + text[unit.end :]).strip()
            tokens = encode_trace(pieces, other, example.prompt)
            shared = next((i for i, (a, b) in enumerate(zip(ids, tokens)) if a != b), None)
            if shared is not None:
                kind = "within" if space.label(code).region == own else "region"
                foils, codes = at.setdefault((shared, kind), (set(), set()))
                foils.add(tokens[shared])
                codes.add(code)
        for (place, kind), (foils, codes) in at.items():
            query = start + place - 1
            key = (kind, unit.key, tuple(sorted(foils)), tuple(sorted(codes)))
            found.add((query, ids[place], *key))
    return found


@pytest.mark.parametrize("kind", ["fine", "coarse", "byte_fallback"])
def test_events_in_pieces_are_those_of_rewritten_traces(kind, examples, space) -> None:
    texts = [text for e in examples for text in (e.prompt, e.reference)]
    pieces = cut_in_pieces(kind, texts)
    several = 0
    for example in examples[:6]:
        ids = encode_trace(pieces, example.reference, example.prompt)
        ids = ids[:-1] if ids[-1] == pieces.eos_token_id else ids
        trace = parse_trace(example, ids, pieces, space, 400)
        events = decision_events(trace, example, pieces, space)
        labels = [e for e in events if e.form == "label" and e.kind != "departure"]
        mine = {(e.query, e.target, e.kind, e.code, e.foils, e.foil_codes) for e in labels}
        text = pieces.decode(list(ids))
        assert text.strip() == example.reference
        expected = slow_label_events(example, ids, text, pieces, space)
        assert mine == expected
        several += len(labels) - len({(e.code, e.repeat, e.kind) for e in labels})
    assert several > 0 or kind == "coarse"  # a label is picked by several tokens


def test_a_code_that_begins_with_another(one: Example, space: LabelSpace) -> None:
    """R0.1 and R0.12: the token behind the shorter code tells."""
    longer = Label("R0.12", "R0.12 late heart failure", "R0", "late", "late heart failure")
    wide = LabelSpace((*space.regions,), (*space.labels, longer), (), "invented")
    example = replace(
        one, gold=("R0.1",), near=("R0.12",), regions=("R0",), candidates=("R0.1", "R0.12", "R1.0")
    )
    pieces = byte_level(["R 0 1 2"], size=259)  # a token a byte
    text = "Review: #1 heart failure R0.1 (a) or R0.12 (b) => (a) R0.1 . Answer: R0.1 ."
    ids = encode_trace(pieces, text, example.prompt)
    trace = parse_trace(example, ids, pieces, wide, 400)
    events = decision_events(trace, example, pieces, wide)
    within = [e for e in events if e.kind == "within" and e.form == "label"]
    said = [(e.code, pieces.decode([e.target]), pieces.decode(list(e.foils))) for e in within]
    assert said == [("R0.1", " ", "2"), ("R0.12", "2", " "), ("R0.1", " ", "2"), ("R0.1", " ", "2")]
    regions = [e for e in events if e.kind == "region" and e.segment == "answer"]
    assert [(pieces.decode([e.target]), pieces.decode(list(e.foils))) for e in regions] == [
        ("0", "1")
    ]

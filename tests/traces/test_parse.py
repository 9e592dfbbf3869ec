from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mechdistill.data.tokenizer import vocabulary
from mechdistill.traces.parse import OK, Trace

END = " <eos>"


@pytest.fixture(scope="module")
def two(examples):
    """An example with two problems."""
    return next(example for example in examples if len(example.gold) == 2)


def words_of(trace: Trace, tokenizer) -> list[str]:
    return tokenizer.convert_ids_to_tokens(list(trace.tokens))


def texts(space, codes) -> list[str]:
    return [space.label(code).text for code in codes]


def test_references_parse_with_gold_answers(examples, parse) -> None:
    for example in examples:
        trace = parse(example, example.reference + END)
        assert trace.status == OK
        assert trace.answer == example.gold
        assert trace.text == example.reference
        assert (trace.example, trace.split) == (example.example, example.split)


def test_segments_of_a_reference(two, parse, tokenizer) -> None:
    trace = parse(two, two.reference + END)
    words = words_of(trace, tokenizer)
    assert words[trace.prompt_length - 1 : trace.prompt_length + 1] == ["Reasoning:", "Overview:"]
    assert words[trace.late_start - 1 : trace.late_start + 1] == ["Review:", "#1"]
    assert words[trace.reasoning_end] == "Answer:"
    predicted = [words[query + 1] for query in trace.early]
    assert predicted == words[trace.prompt_length : trace.late_start]


def test_early_window_is_cut_at_its_width(two, parse) -> None:
    trace = parse(two, two.reference + END, early_tokens=4)
    first = trace.prompt_length - 1
    assert trace.early == (first, first + 1, first + 2, first + 3)


def test_region_events_ask_for_the_true_region_against_the_decoys(
    two, parse, space, tokenizer
) -> None:
    trace = parse(two, two.reference + END)
    words = words_of(trace, tokenizer)
    events = [event for event in trace.events if event.kind == "region"]
    names = [space.region(code).name for code in two.regions]
    assert [words[event.query] for event in events] == ["#1", "#2"]
    assert [words[event.query + 1] for event in events] == names
    assert tokenizer.convert_ids_to_tokens([event.target for event in events]) == names
    listed = {space.region_of(code).name for code in two.candidates}
    for event in events:
        foils = tokenizer.convert_ids_to_tokens(list(event.foils))
        assert set(foils) == listed - set(names)
        assert [space.region(code).name for code in event.foil_codes] == foils


def test_within_events_ask_for_the_letter_of_the_gold_code(two, parse, space, tokenizer) -> None:
    trace = parse(two, two.reference + END)
    words = words_of(trace, tokenizer)
    events = [event for event in trace.events if event.kind == "within"]
    assert len(events) == 2
    for event, gold, near in zip(events, two.gold, two.near, strict=True):
        assert words[event.query] == "=>"
        letter = "(a)" if gold < near else "(b)"
        other = "(b)" if gold < near else "(a)"
        assert tokenizer.convert_ids_to_tokens([event.target, *event.foils]) == [letter, other]
        assert (event.target_code, event.foil_codes) == (gold, (near,))


def test_departures_are_in_clauses_and_in_the_answer(two, parse, space, tokenizer) -> None:
    trace = parse(two, two.reference + END)
    words = words_of(trace, tokenizer)
    for segment, before in (("reasoning", {"(a)", "(b)"}), ("answer", {"Answer:", ";"})):
        events = [e for e in trace.events if e.kind == "departure" and e.segment == segment]
        assert [event.target_code for event in events] == list(two.gold)
        for event, gold, near in zip(events, two.gold, two.near, strict=True):
            assert words[event.query] in before
            assert trace.tokens[event.query + 1] == event.target
            pair = tokenizer.convert_ids_to_tokens([event.target, *event.foils])
            assert pair == texts(space, [gold, near])


def test_refinement_positions_see_kept_and_rejected_mentions_before_them(
    two, parse, space, tokenizer
) -> None:
    trace = parse(two, two.reference + END)
    words = words_of(trace, tokenizer)
    assert [words[r.query] in {"=>"} for r in trace.refine] == [True, False, True, False]
    gold, near = set(texts(space, two.gold)), set(texts(space, two.near))
    for position in trace.refine:
        assert position.shortlist
        assert position.near_miss
        assert all(p < position.query for p in (*position.shortlist, *position.near_miss))
        assert {words[p] for p in position.shortlist} <= gold
        assert {words[p] for p in position.near_miss} <= near
    at_label = trace.refine[1]
    pair = tokenizer.convert_ids_to_tokens([at_label.target, at_label.foil])
    assert pair == texts(space, [two.gold[0], two.near[0]])


def test_verdicts_are_the_traces_own(two, parse, space) -> None:
    """A student that keeps the near-miss is taken at its word; the events still go by gold."""
    gold, near = texts(space, [two.gold[0], two.near[0]])
    letter, other = ("(a)", "(b)") if two.gold[0] < two.near[0] else ("(b)", "(a)")
    wrong = (
        two.reference.replace(f"=> {letter} {gold}", f"=> {other} {near}")
        .replace(f"not {other} {near}", f"not {letter} {gold}")
        .replace(f"Answer: {gold}", f"Answer: {near}")
    )
    trace = parse(two, wrong + END)
    assert trace.status == OK
    assert trace.answer == (two.near[0], two.gold[1])
    verdicts = {m.code: m.verdict for m in trace.mentions if m.clause == 0 and m.kind == "label"}
    assert verdicts == {two.gold[0]: "rejected", two.near[0]: "kept"}
    within = next(event for event in trace.events if event.kind == "within")
    assert within.target_code == two.gold[0]
    departure = next(event for event in trace.events if event.kind == "departure")
    assert departure.target_code == two.near[0]


def test_a_pair_without_the_gold_code_gives_no_within_event(two, parse, space) -> None:
    third = next(c for c in space.siblings(two.gold[0]) if c != two.near[0])
    gold, other = texts(space, [two.gold[0], third])
    trace = parse(two, two.reference.replace(gold, other) + END)
    assert trace.status == OK
    assert [event.clause for event in trace.events if event.kind == "within"] == [1]
    assert {position.clause for position in trace.refine} == {1}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda text: text, "unfinished"),
        (lambda text: text.split(" Answer:")[0] + END, "no answer"),
        (lambda text: text.split(" Answer:")[0] + " Answer: ." + END, "no answer"),
        (lambda text: "Answer:" + text.split("Answer:")[1] + END, "no clause"),
        (lambda text: text.replace("=> ", "", 1) + END, "clause without verdict"),
        (lambda text: text.replace(" (b)", "", 1) + END, "clause without pair"),
        (lambda text: "<eos>", "no answer"),
        (lambda text: "", "unfinished"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_raises(two, parse, change, status) -> None:
    assert parse(two, change(two.reference)).status == status


def test_a_verdict_for_a_third_code_is_marked(two, parse, space) -> None:
    third = next(c for c in space.siblings(two.gold[0]) if c != two.near[0])
    gold, other = texts(space, [two.gold[0], third])
    letter = "(a)" if two.gold[0] < two.near[0] else "(b)"
    text = two.reference.replace(f"=> {letter} {gold}", f"=> {letter} {other}")
    assert parse(two, text + END).status == "verdict outside the pair"


def test_repeated_answers_count_once(two, parse, space) -> None:
    gold = space.label(two.gold[0]).text
    text = two.reference.replace(f"Answer: {gold}", f"Answer: {gold} ; {gold}")
    assert parse(two, text + END).answer == two.gold


def test_without_its_heading_the_review_is_still_found(two, parse) -> None:
    with_heading = parse(two, two.reference + END)
    without = parse(two, two.reference.replace("Review: ", "") + END)
    assert without.status == OK
    assert without.late_start == with_heading.late_start - 1
    assert len(without.refine) == len(with_heading.refine)


@given(data=st.data())
@hypothesis_settings(max_examples=150, deadline=None)
def test_any_tokens_parse_to_valid_positions(data, examples, parse, space) -> None:
    """Random words, and references with words cut out, doubled or swapped in."""
    example = data.draw(st.sampled_from(examples))
    ids = data.draw(st.lists(st.integers(0, len(vocabulary(space)) - 1), max_size=40))
    if data.draw(st.booleans()):
        reference = list(parse(example, example.reference + END).tokens)
        reference = reference[parse(example, "").prompt_length :]
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(reference) - 1))
            reference[place : place + data.draw(st.integers(0, 2))] = data.draw(
                st.lists(st.sampled_from(reference), max_size=2)
            )
            if not reference:
                break
        ids = reference
    trace = parse(example, ids)
    length = len(trace.tokens)
    queries = [*trace.early, *(e.query for e in trace.events), *(r.query for r in trace.refine)]
    assert all(trace.prompt_length - 1 <= query < length for query in queries)
    assert all(event.target not in event.foils for event in trace.events)
    assert all(r.target != r.foil for r in trace.refine)
    assert all(trace.prompt_length <= m.start < m.end <= length for m in trace.mentions)
    assert trace.late_start == -1 or trace.prompt_length <= trace.late_start < length
    assert trace.prompt_length <= trace.reasoning_end <= length
    assert set(trace.answer) <= {label.code for label in space.labels}


def test_an_example_with_a_name_of_its_own_keeps_it(two, parse) -> None:
    assert parse(replace(two, example="mine"), two.reference + END).example == "mine"

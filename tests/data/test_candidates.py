"""Lists of many labels: what is on them, what is not, and that nothing else of a note changes."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdistill.data.candidates import CandidateLists, Number, choose, list_all, relisted
from mechdistill.data.examples import Example
from mechdistill.data.frame import Frame
from mechdistill.data.labels import LabelSpace
from mechdistill.data.prompts import CANDIDATES
from mechdistill.data.retrieval import LabelRetriever
from mechdistill.data.tokenizer import encode_prompt
from mechdistill.data.twins import twins_of
from mechdistill.evaluate.predictions import prediction_table
from mechdistill.traces.quality import trace_quality
from mechdistill.traces.reference import reference_traces
from tests.small_space import small_space

SMALL = small_space()
CODES = [label.code for label in SMALL.labels]


def lists_of(
    space: LabelSpace,
    number: Number,
    force_gold: bool = True,
    list_first: bool = True,
    frame: Frame | None = None,
) -> CandidateLists:
    return CandidateLists(
        space, frame or Frame(), number, force_gold=force_gold, list_first=list_first, seed=7
    )


def note_of(drawn: Example) -> str:
    return drawn.prompt[: drawn.prompt.index(CANDIDATES)].strip()


def region_counts(space: LabelSpace, codes: tuple[str, ...]) -> Counter[str]:
    return Counter(space.label(code).region for code in codes)


@settings(max_examples=80, deadline=None)
@given(st.permutations(CODES), st.integers(4, 14), st.integers(0, 2))
def test_a_list_has_its_length_and_no_label_stands_alone(
    ranked: list[str], number: int, forced: int
) -> None:
    pairs = [(f"R{i}.0", f"R{i}.2") for i in range(forced)]
    groups = choose(SMALL, ranked, pairs, number)
    listed = [code for group in groups.values() for code in group]
    assert len(set(listed)) == len(listed) <= number
    assert all(len(group) >= 2 for group in groups.values())
    assert {code for pair in pairs for code in pair} <= set(listed)
    if len(listed) < number:  # every label left would be alone, or is the last of a full region
        assert number - len(listed) == 1
        assert all(len(group) == 3 for group in groups.values())
    if number >= 2 * forced + 2:
        assert ranked[0] in listed


@pytest.mark.parametrize("list_first", [True, False])
@pytest.mark.parametrize("number", [10, "all"])
def test_the_note_and_what_is_true_of_it_stay(
    examples: list[Example], space: LabelSpace, number: Number, list_first: bool
) -> None:
    frame = Frame("Candidates: a demonstration. ", " <end>")
    framed = [
        replace(
            one,
            prompt=frame(one.prompt),
            evidence=tuple((a + 29, b + 29) for a, b in one.evidence),
            cues=tuple((a + 29, b + 29) for a, b in one.cues),
        )
        for one in examples[:40]
    ]
    lists = lists_of(space, number, list_first=list_first, frame=frame)
    for drawn, plain in zip(framed, examples, strict=False):
        found = lists.listed(drawn, np.random.default_rng(1)).example
        note = note_of(plain)
        assert found.prompt.startswith(frame.before) and found.prompt.endswith(frame.behind)
        assert (found.gold, found.near, found.reference) == (
            drawn.gold,
            drawn.near,
            drawn.reference,
        )
        for spans in ("evidence", "cues"):
            told = [found.prompt[a:b] for a, b in getattr(found, spans)]
            assert told == [drawn.prompt[a:b] for a, b in getattr(drawn, spans)]
        body = found.prompt.removeprefix(frame.before)
        assert body.startswith(CANDIDATES) == list_first
        assert body.count(note) == 1 and body.count("Reasoning:") == 1
        assert {*found.gold, *found.near} <= set(found.candidates)
        assert min(region_counts(space, found.candidates).values()) >= 2
        assert len(found.candidates) == (32 if number == "all" else 10)
        for code in found.candidates:
            assert space.label(code).text in body


def test_all_labels_are_one_list_in_all_prompts(
    examples: list[Example], space: LabelSpace, tokenizer
) -> None:
    found, table = list_all(examples, lists_of(space, "all"), 7)
    assert len({one.candidates for one in found}) == 1
    assert set(found[0].candidates) == {label.code for label in space.labels}
    shared = found[0].prompt[: found[0].prompt.index(space.wording.start)]
    assert all(one.prompt.startswith(shared) for one in found)
    ids = [encode_prompt(tokenizer, one.prompt) for one in found]
    assert len({tuple(row[: 2 * len(space.labels)]) for row in ids}) == 1
    assert (table["retrieved"] == table["gold"]).all()


def test_what_is_not_retrieved_is_not_listed_and_counts_as_a_miss(
    examples: list[Example], space: LabelSpace, tokenizer
) -> None:
    lists = lists_of(space, 8, force_gold=False)
    found, table = list_all(examples, lists, 7)
    missing = [one for one in found if not set(one.gold) <= set(one.candidates)]
    assert missing and len(missing) < len(found)
    for one, (_, row) in zip(found, table.iterrows(), strict=True):
        assert row["retrieved"] == len(set(one.gold) & set(one.candidates))
    for one in missing:
        for gold in set(one.gold) - set(one.candidates):
            assert space.label(gold).text not in one.prompt
            assert space.label(gold).text not in one.reference
        for gold, near in zip(one.gold, one.near, strict=True):
            if gold in one.candidates:
                assert near in one.candidates
                assert space.label(near).text in one.reference
    traces = reference_traces(found, tokenizer, space, 30)
    codes = [label.code for label in space.labels]
    predictions = prediction_table(traces, found, codes, "teacher", "teacher", 0)
    gold = [set(row) for row in predictions["gold"]]
    hits = [len(true & set(row)) for true, row in zip(gold, predictions["predicted"], strict=True)]
    assert [len(true) for true in gold] == [len(one.gold) for one in examples]
    assert sum(hits) == table["retrieved"].sum() < table["gold"].sum()
    assert trace_quality(found, traces, space)["micro_f1"] < 1


def test_problems_that_are_not_listed_keep_their_numbers(
    examples: list[Example], space: LabelSpace
) -> None:
    lists = lists_of(space, 8, force_gold=False)
    found = [lists.listed(one, np.random.default_rng(0)).example for one in examples]
    second = [
        one
        for one in found
        if len(one.gold) == 2 and [code in one.candidates for code in one.gold] == [False, True]
    ]
    assert second
    for one in second:
        name = space.region(one.regions[1]).name
        assert one.reference.startswith(f"Overview: #2 {name} . Review: #2 {name} ")
    nothing = [one for one in found if not set(one.gold) & set(one.candidates)]
    assert all(one.reference == "Overview: . Review: Answer: ." for one in nothing)


def test_forcing_is_what_lists_true_codes(examples: list[Example], space: LabelSpace) -> None:
    free, forced = lists_of(space, 8, force_gold=False), lists_of(space, 8)
    missed = [one for one in examples if not set(one.gold) <= set(_listed(free, one).candidates)]
    assert missed
    for one in missed:
        assert {*one.gold, *one.near} <= set(_listed(forced, one).candidates)
        # recall is that of the retriever in both
        assert forced.listed(one, _rng()).retrieved == free.listed(one, _rng()).retrieved


def _listed(lists: CandidateLists, drawn: Example) -> Example:
    return lists.listed(drawn, _rng()).example


def test_the_list_that_was_drawn_is_not_read(examples: list[Example], space: LabelSpace) -> None:
    """It holds the true codes: a retriever that saw it would find them there."""
    one, other = examples[:2]
    swapped = note_of(one) + " " + other.prompt[other.prompt.index(CANDIDATES) :]
    lists = lists_of(space, 8, force_gold=False)
    assert lists.listed(one, _rng()) == lists.listed(replace(one, prompt=swapped), _rng())


def test_retrieved_lists_leave_out_what_is_not_asked_for(
    examples: list[Example], space: LabelSpace
) -> None:
    ranked = LabelRetriever(space).ranked(note_of(examples[0]))
    other = next(code for code in ranked if space.label(code).region not in examples[0].regions)
    silent = replace(examples[0], unasked=(other,))
    lists = lists_of(space, 10, force_gold=False)
    assert other in lists.listed(examples[0], np.random.default_rng(0)).example.candidates
    assert other not in lists.listed(silent, np.random.default_rng(0)).example.candidates


def test_listed_codes_that_are_not_asked_for_count_neither_way(
    examples: list[Example], space: LabelSpace, tokenizer
) -> None:
    other = next(label.code for label in space.labels if label.region not in examples[0].regions)
    listed = lists_of(space, "all").listed(replace(examples[0], unasked=(other,)), _rng()).example
    trace = reference_traces([listed], tokenizer, space, 30)[0]
    saying_more = replace(trace, answer=(*trace.answer, other))
    codes = [label.code for label in space.labels]
    table = prediction_table([saying_more], [listed], codes, "m", "m", 0)
    assert set(table["predicted"][0]) == set(listed.gold)
    assert trace_quality([listed], [saying_more], space)["exact_match"] == 1
    unlisted = replace(listed, candidates=tuple(c for c in listed.candidates if c != other))
    table = prediction_table([saying_more], [unlisted], codes, "m", "m", 0)
    assert other in table["predicted"][0]


def test_lists_are_a_function_of_seed_and_name(examples: list[Example], space: LabelSpace) -> None:
    one, again = (list_all(examples[:9], lists_of(space, 10), seed)[0] for seed in (7, 7))
    other, _ = list_all(examples[:9], lists_of(space, 10), 8)
    backwards, _ = list_all(examples[:9][::-1], lists_of(space, 10), 7)
    assert one == again == backwards[::-1]
    assert [set(x.candidates) for x in one] == [set(x.candidates) for x in other]
    assert one != other


def test_place_in_the_list_does_not_tell_what_is_true(
    examples: list[Example], space: LabelSpace
) -> None:
    found, _ = list_all(examples, lists_of(space, 16, force_gold=False), 7)
    places = [
        list(region_counts(space, one.candidates)).index(one.regions[0])
        / len(region_counts(space, one.candidates))
        for one in found
        if one.gold[0] in one.candidates
    ]
    assert 0.3 < np.mean(np.array(places) < 0.5) < 0.7


def test_relisted_notes_have_twins(examples: list[Example], space: LabelSpace, tokenizer) -> None:
    found = relisted(examples[0], [lists_of(space, "all")], _rng())
    twins = {twin.twin: twin for twin in twins_of(found, space, tokenizer, 0)}
    assert set(twins) == {"K0", "K1", "K2"}
    note = found.prompt.index(space.wording.start)
    assert all(start >= note for twin in twins.values() for start, _ in twin.changed)


def test_without_lists_a_drawn_note_stays_and_nothing_is_drawn(examples: list[Example]) -> None:
    rng = _rng()
    assert relisted(examples[0], (), rng) is examples[0]
    assert rng.integers(1000) == _rng().integers(1000)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)

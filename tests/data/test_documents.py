"""Notes that are made of documents, in the world of the invented dictionary."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from mechdistill.data.card import data_card
from mechdistill.data.documents import Pool
from mechdistill.data.examples import Example, check_tokens, draw_cases, example_of
from mechdistill.data.labels import Document, LabelSpace
from mechdistill.data.notes import Role
from mechdistill.data.splits import SPLITS, split_of
from mechdistill.data.tokenizer import build_tokenizer, encode_prompt, prompt_spans
from mechdistill.data.twins import TWINS, twins_of
from mechdistill.data.world import Case, documents_of, draw_case
from mechdistill.errors import InputError
from mechdistill.traces.parse import OK
from mechdistill.traces.reference import reference_traces
from tests.made_world import COUNTS, SETTINGS, made_space

Cases = list[tuple[str, str, Case]]


@pytest.fixture(scope="module", params=["links", "see_also"])
def made(request, tmp_path_factory) -> LabelSpace:
    return made_space(tmp_path_factory.mktemp("dictionary"), request.param)


@pytest.fixture(scope="module")
def drawn(made: LabelSpace) -> Cases:
    return draw_cases(made, SETTINGS, COUNTS, seed=7)


@pytest.fixture(scope="module")
def shown(drawn: Cases) -> list[Example]:
    return [example_of(case, name, split) for name, split, case in drawn]


@pytest.fixture(scope="module")
def documents(made: LabelSpace) -> dict[str, Document]:
    return {document.title: document for document in made.documents}


def texts(case: Case, role: Role) -> list[str]:
    return [piece.text for piece in case.pieces if piece.role == role]


def test_gold_is_related_and_no_other_candidate_is(
    drawn: Cases, documents: dict[str, Document]
) -> None:
    for _, _, case in drawn:
        document = documents[case.document]
        gold = {problem.gold for problem in case.problems}
        listed = {code for pair in case.pairs for code in pair}
        assert gold <= listed
        assert listed & {*document.related, *document.filtered} == gold


def test_a_document_shows_as_many_regions_as_it_has_up_to_the_most(
    drawn: Cases, made: LabelSpace, documents: dict[str, Document]
) -> None:
    for _, split, case in drawn:
        unseen = made.never_gold if split != "test" else ()
        related = [code for code in documents[case.document].related if code not in unseen]
        regions = {made.label(code).region for code in related}
        assert len(case.problems) == min(SETTINGS.problems_max, len(regions))
    assert {len(case.problems) for _, _, case in drawn} == {1, 2}


def test_near_misses_are_siblings_in_a_pair_with_gold(drawn: Cases, made: LabelSpace) -> None:
    for _, _, case in drawn:
        assert len({made.label(pair[0]).region for pair in case.pairs}) == 4
        for problem in case.problems:
            assert problem.near in made.siblings(problem.gold)
            assert tuple(sorted((problem.gold, problem.near))) in case.pairs


def test_nothing_told_is_said_to_be_absent(drawn: Cases, documents: dict[str, Document]) -> None:
    for _, _, case in drawn:
        assert not set(texts(case, Role.NEGATED)) & set(documents[case.document].findings)


def test_findings_of_the_document_come_first(
    drawn: Cases, made: LabelSpace, documents: dict[str, Document]
) -> None:
    for _, _, case in drawn:
        for problem in case.problems:
            told = set(documents[case.document].findings)
            of_region = told & set(made.region(problem.region).evidence)
            count = min(len(problem.evidence), len(of_region))
            assert set(problem.evidence[:count]) <= of_region


def test_a_document_is_in_one_split_and_outside_training_makes_one_note(drawn: Cases) -> None:
    for split in SPLITS:
        used = [case.document for _, where, case in drawn if where == split]
        assert all(split_of([title], SETTINGS.seed) == split for title in used)
        if split != "training":
            assert len(set(used)) == len(used)


def test_more_notes_than_documents_are_refused_with_their_number(made: LabelSpace) -> None:
    there = len(documents_of(made, SETTINGS, "test").choices)
    with pytest.raises(InputError, match=rf"data\.splits\.test is {there + 1}, and {there} "):
        draw_cases(made, SETTINGS, {"test": there + 1}, seed=0)


def test_a_split_without_documents_is_an_error(made: LabelSpace) -> None:
    wanted = replace(SETTINGS, problems_min=5)
    with pytest.raises(InputError, match="no document of split 'training'"):
        draw_case(made, wanted, "training", np.random.default_rng(0))


def test_never_gold_codes_are_gold_in_test_alone(made: LabelSpace) -> None:
    for split in SPLITS:
        choices = documents_of(made, SETTINGS, split).choices
        gold = {code for one in choices for codes in one.gold.values() for code in codes}
        assert gold.isdisjoint(made.never_gold) == (split != "test")


def test_in_a_pair_either_code_is_as_often_the_true_one(made: LabelSpace) -> None:
    """Where one code of a region is true twice as often as each other: all regions together."""
    pool = skewed(made)
    often = {region.code: made.members(region.code)[0] for region in made.regions}
    rng = np.random.default_rng(5)
    true_and_near = [0, 0]
    for _ in range(4000):
        choices = pool.choices[int(rng.integers(len(pool.choices)))]
        pairs, gold = pool.draw_groups(choices, 1, 4, rng)
        first = often[made.label(gold[0]).region]
        if first in pairs[0]:
            true_and_near[first != gold[0]] += 1
    true, near = true_and_near
    assert abs(true - near) < 4 * np.sqrt(true + near)


def skewed(space: LabelSpace) -> Pool:
    """Documents that relate to one code each; in a region one code twice as often."""
    documents = []
    for region in space.regions:
        for position, code in enumerate(space.members(region.code)):
            documents += [Document(code, (code,), (), ())] * (4 if position == 0 else 2)
    pool = documents_of(replace(space, documents=tuple(documents), never_gold=()), SETTINGS, "test")
    everything = [
        choices for split in SPLITS for choices in documents_of(pool.space, SETTINGS, split).choices
    ]
    return Pool(pool.space, tuple(everything))


def test_each_piece_is_a_token(drawn: Cases, made: LabelSpace) -> None:
    check_tokens([case for _, _, case in drawn], build_tokenizer(made))


def test_twins_have_the_length_of_their_notes_and_change_what_they_say(
    shown: list[Example], made: LabelSpace
) -> None:
    tokenizer = build_tokenizer(made)
    for example in (one for one in shown if one.split == "patching"):
        twins = {twin.twin: twin for twin in twins_of(example, made, tokenizer, 7)}
        assert list(twins) == list(TWINS)
        before, spans = prompt_spans(tokenizer, example.prompt)
        for name, twin in twins.items():
            after = encode_prompt(tokenizer, twin.prompt)
            assert len(after) == len(before)
            changed = {spans[i] for i, pair in enumerate(zip(before, after)) if len({*pair}) > 1}
            decisive = {*example.evidence, *example.cues}
            if name == "K0":
                assert not changed & decisive
            else:
                assert changed == (decisive if name == "K1" else set(example.cues))
        new = [twins["K2"].prompt[start:end] for start, end in twins["K2"].changed]
        assert new == [made.label(code).cue for code in example.near]
        said = {word for words in made.wording.indifferent for word in words}
        for name in ("K0", "K1"):
            changed_words = {twins[name].prompt[a:b] for a, b in twins[name].changed}
            assert changed_words <= said


def test_reference_traces_parse_with_all_their_events(
    shown: list[Example], made: LabelSpace
) -> None:
    traces = reference_traces(shown, build_tokenizer(made), made, early_tokens=30)
    for example, trace in zip(shown, traces, strict=True):
        count = len(example.gold)
        assert trace.status == OK
        assert trace.answer == example.gold
        kinds = Counter((event.kind, event.segment) for event in trace.events)
        assert kinds["region", "reasoning"] == kinds["within", "reasoning"] == count
        assert kinds["departure", "reasoning"] == kinds["departure", "answer"] == count
        assert len(trace.refine) == 2 * count


def test_same_seed_same_notes(made: LabelSpace, drawn: Cases) -> None:
    again = draw_cases(made, SETTINGS, {"ranking": 5}, seed=7)
    assert again == [one for one in drawn if one[1] == "ranking"][:5]


def test_the_card_tells_the_source_the_licence_and_how_much_the_list_tells(
    shown: list[Example], made: LabelSpace
) -> None:
    tokenizer = build_tokenizer(made)
    patched = [example for example in shown if example.split == "patching"]
    twins = [twin for example in patched for twin in twins_of(example, made, tokenizer, 7)]
    card = data_card(made, tokenizer, shown, twins, {"name": "foldoc"}, COUNTS)
    assert "GNU Free Documentation License" in card
    assert "Editor Denis Howe, as in an invented dictionary" in card
    pairs = sum(len(document.related) for document in made.documents)
    filtered = sum(len(document.filtered) for document in made.documents)
    assert f"{len(made.documents)} documents relate to a label, in {pairs} pairs" in card
    assert f"{filtered} further pairs are filter rows" in card
    told = re.search(r"right in (\d+) % of (\d+) pairs", card)
    assert told is not None
    assert int(told[2]) == sum(len(x.gold) for x in shown if x.split != "training")
    assert 30 < int(told[1]) < 80
    assert "| K1 | findings and cues of the true codes" in card
    for word in ("patient", "clinic", "hospital", "ICD"):
        assert word not in card

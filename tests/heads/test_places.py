"""Positions found in prompts and traces, checked by the words that stand there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechdistill.errors import InputError
from mechdistill.heads.places import all_places, first_difference, places_of


@pytest.fixture(scope="module")
def places(traces, examples, space, tokenizer):
    return all_places(traces, examples, space, tokenizer)


def words(place, positions, tokenizer):
    return [tokenizer.decode([place.tokens[p]]) for p in positions]


def test_evidence_and_cues_stand_where_the_note_tells_them(places, examples, space, tokenizer):
    for place, example in zip(places, examples, strict=True):
        told = [example.prompt[start:end] for start, end in example.evidence]
        assert words(place, place.evidence, tokenizer) == told
        for at, cue in zip(place.refine, place.cues, strict=True):
            (word,) = words(place, cue, tokenizer)
            assert word == space.label(example.gold[at.clause]).cue


def test_anchors_are_found_in_the_candidate_list(places, examples, space, tokenizer):
    for place, example in zip(places, examples, strict=True):
        names = {space.region(region).name for region in example.regions}
        assert set(words(place, place.anchor_mentions, tokenizer)) == names
        assert all(p < place.prompt_length for p in place.anchor_mentions)


def test_first_token_and_end_of_text_are_sinks(places):
    assert all(place.sinks == (0, len(place.tokens) - 1) for place in places)


def test_region_events_are_early_positions_before_a_region(places, examples, space, tokenizer):
    for place, example in zip(places, examples, strict=True):
        named = words(place, [q + 1 for q in place.region_events], tokenizer)
        assert named[: len(example.regions)] == [space.region(r).name for r in example.regions]


def test_gold_and_near_miss_tokens_differ(places, examples, space, tokenizer):
    for place, example in zip(places, examples, strict=True):
        gold = [tokenizer.decode([token]) for token in place.gold]
        assert gold == [space.label(code).text for code in example.gold]
        assert not set(place.gold) & set(place.near)


def test_labels_part_at_their_first_different_token():
    assert first_difference([4, 5, 6], [4, 7, 6]) == (5, 7)
    with pytest.raises(ValueError, match="part at no token"):
        first_difference([4, 5], [4, 5, 6])


def test_trace_behind_another_prompt_is_refused(traces, examples, space, tokenizer):
    other = replace(examples[0], prompt=examples[1].prompt)
    with pytest.raises(InputError, match="does not begin with"):
        places_of(traces[0], other, space, tokenizer)

"""Places of what can be attended to at a decision, by the words that stand there."""

from __future__ import annotations

import numpy as np
import pytest

from mechdistill.data.tokenizer import encode_trace
from mechdistill.heads.event_places import PLACES, PromptPlaces, supported
from mechdistill.traces.decision_events import decision_events
from mechdistill.traces.parse import parse_trace
from tests.small_tokenizers import byte_level

MADE = PromptPlaces(9, {"X": [4, 5], "Y": [6]}, {"X": [2], "Y": [3]}, [0, 1, 2, 3], [0])


def test_every_token_before_the_query_has_one_place() -> None:
    assert [PLACES[i] for i in MADE.at(12, "X", [10])] == [
        *("sinks", "note", "evidence", "other_evidence", "chosen_region", "chosen_region"),
        *("other_regions", "prompt", "prompt", "reasoning", "near_miss", "reasoning", "reasoning"),
    ]
    assert [PLACES[i] for i in MADE.at(5, "Y", [10])] == [
        *("sinks", "note", "other_evidence", "evidence", "other_regions", "other_regions")
    ]
    assert "evidence" not in [PLACES[i] for i in MADE.at(12, "Z", [])]


def words(tokenizer, tokens, numbers, place):
    """The text of the tokens of a place, runs of them parted."""
    at = [p for p, number in enumerate(numbers) if PLACES[number] == place]
    runs = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if at else []
    return [tokenizer.decode([tokens[p] for p in run]).strip() for run in runs]


@pytest.mark.parametrize("whole_words", [True, False])
def test_places_of_notes_hold_what_they_are_named_for(
    whole_words, traces, examples, space, tokenizer
) -> None:
    if not whole_words:
        tokenizer = byte_level([t for e in examples for t in (e.prompt, e.reference)], size=500)
        traces = [_retold(example, tokenizer, space) for example in examples]
    several = [e for e in examples if len(e.regions) > 1]
    assert several
    for trace, example in zip(traces, examples, strict=True):
        if example not in several:
            continue
        places = PromptPlaces.of(example, space, tokenizer)
        events = decision_events(trace, example, tokenizer, space)
        region = next(event for event in events if event.kind == "region")
        found = places.at(region.query, region.region, region.earlier)
        assert len(found) == region.query + 1

        said = [example.prompt[slice(*span)] for span in example.evidence]
        own = [each for each in said if each in space.region(region.region).evidence]
        assert 0 < len(own) < len(said)
        assert words(tokenizer, trace.tokens, found, "evidence") == own
        others = words(tokenizer, trace.tokens, found, "other_evidence")
        assert sorted([*own, *others]) == sorted(said)

        lines = " ".join(words(tokenizer, trace.tokens, found, "chosen_region"))
        others = " ".join(words(tokenizer, trace.tokens, found, "other_regions"))
        assert space.region(region.region).name in lines
        for code in example.candidates:
            shown = lines if space.label(code).region == region.region else others
            assert space.label(code).text in shown


def _retold(example, tokenizer, space):
    tokens = encode_trace(tokenizer, example.reference, example.prompt)
    return parse_trace(example, tokens, tokenizer, space, 30)


def test_findings_are_known_as_a_whole_else_by_a_word(space) -> None:
    regions = [region.code for region in space.regions]
    assert supported("Gout  SIGN 1", regions, space) == {"R2"}
    assert supported("gout", regions, space) == {"R2"}
    assert supported("gout", ["R0"], space) == set()
    assert supported("sign", ["R0", "R2"], space) == {"R0", "R2"}

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from mechdistill.data.examples import Example
from mechdistill.data.twins import Twin
from mechdistill.errors import InputError
from mechdistill.patching.pairs import (
    eligible_traces,
    is_eligible,
    make_pairs,
    phase_events,
)
from mechdistill.traces.parse import Mention, RefinePosition


class Letters:
    """A tokenizer whose tokens are letters, behind one token that begins a text."""

    bos_token = None

    @property
    def backend_tokenizer(self):
        return self

    def encode(self, text, add_special_tokens):
        offsets = [(0, 0), *((at, at + 1) for at in range(len(text)))]
        return SimpleNamespace(ids=[1, *map(ord, text)], offsets=offsets)


def example(regions=("I50",)):
    return Example("a", "patching", "", ("x",), ("y",), regions, (), (), (), "")


def test_corrupted_sequence_is_the_twin_under_the_clean_trace(pairs):
    trace = dataclasses.replace(pairs[0].trace, prompt_length=4)
    twins = {("a", "K1"): Twin("a", "K1", "xyz", (), 1)}
    (pair,) = make_pairs([trace, pairs[1].trace], twins, "K1", Letters())
    assert pair.corrupted_prompt == (1, *map(ord, "xyz"))
    assert pair.corrupted[:4] == pair.corrupted_prompt
    assert pair.corrupted[4:] == trace.tokens[4:]
    assert pair.clean_prompt == trace.tokens[:4]
    with pytest.raises(InputError, match="none of 1 notes for patching has a twin K2"):
        make_pairs([trace], twins, "K2", Letters())


def test_twin_of_another_length_is_refused(pairs):
    twins = {("a", "K1"): Twin("a", "K1", "xyz", (), 1)}
    with pytest.raises(InputError, match="twin K1 of a has 4 tokens, the prompt 9"):
        make_pairs([pairs[0].trace], twins, "K1", Letters())


def test_events_belong_to_their_phase(pairs):
    trace = pairs[0].trace
    assert [e.kind for e in phase_events(trace, 1)] == ["region"]
    assert [e.kind for e in phase_events(trace, 2)] == ["within", "departure", "departure"]


@pytest.mark.parametrize(
    ("named", "segment", "shortlist", "near", "taken", "expected"),
    [
        ("I50", "early", (3,), (4,), "target", True),
        ("J45", "early", (3,), (4,), "target", False),
        ("I50", "late", (3,), (4,), "target", False),
        ("I50", "early", (), (4,), "target", False),
        ("I50", "early", (3,), (), "target", False),
        ("I50", "early", (3,), (4,), "near-miss", False),
    ],
)
def test_trace_must_show_both_phases(pairs, named, segment, shortlist, near, taken, expected):
    written = pairs[0].trace.tokens[7]
    target, foil = (written, written + 1) if taken == "target" else (written + 1, written)
    trace = dataclasses.replace(
        pairs[0].trace,
        mentions=(Mention("region", named, 2, 3, segment, -1, "kept"),),
        refine=(RefinePosition(6, target, foil, 0, shortlist, near),),
    )
    assert is_eligible(trace, example()) is expected
    if expected:
        assert eligible_traces([trace, pairs[1].trace], [example()]) == [trace]
    else:
        with pytest.raises(InputError, match="none of 1 teacher traces"):
            eligible_traces([trace, pairs[1].trace], [example()])

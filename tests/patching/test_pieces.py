"""Pairs and decisions under a sub-word tokenizer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechdistill.data.examples import example_of
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import encode_prompt, encode_trace
from mechdistill.data.twins import twins_of
from mechdistill.data.world import WorldSettings, draw_case
from mechdistill.patching.conditions import head_masks
from mechdistill.patching.margin_sweep import sweep_margins
from mechdistill.patching.pairs import is_eligible, make_pairs, phase_events
from mechdistill.traces.parse import parse_trace
from tests.small_space import small_model, small_space
from tests.small_tokenizers import byte_level


@pytest.fixture(scope="module")
def space() -> LabelSpace:
    return small_space()


@pytest.fixture(scope="module")
def examples(space):
    settings = WorldSettings(seed=0, groups_in_context=4, problems_min=1, problems_max=2)
    rng = np.random.default_rng(0)
    cases = [draw_case(space, settings, "patching", rng) for _ in range(6)]
    return [example_of(case, f"n{i}", "patching") for i, case in enumerate(cases)]


@pytest.fixture(scope="module")
def pieces(examples):
    return byte_level([t for e in examples for t in (e.prompt, e.reference)], size=500)


@pytest.fixture(scope="module")
def traces(examples, space, pieces):
    return [
        parse_trace(e, encode_trace(pieces, e.reference, e.prompt), pieces, space, 30)
        for e in examples
    ]


@pytest.fixture(scope="module")
def twins(examples, space, pieces):
    found = [twin for e in examples for twin in twins_of(e, space, pieces, seed=0)]
    return {(twin.example, twin.twin): twin for twin in found}


def test_references_can_be_patched(traces, examples) -> None:
    assert all(is_eligible(t, e) for t, e in zip(traces, examples, strict=True))


def test_pairs_align_and_notes_without_a_twin_are_left_out(traces, twins, pieces) -> None:
    for kind in ("K1", "K2"):
        pairs = make_pairs(traces, twins, kind, pieces)
        assert [pair.example for pair in pairs] == [
            t.example for t in traces if (t.example, kind) in twins
        ]
        for pair in pairs:
            assert len(pair.corrupted) == len(pair.trace.tokens)
            prompt = encode_prompt(pieces, twins[pair.example, kind].prompt)
            assert list(pair.corrupted_prompt) == prompt


@pytest.mark.parametrize("phase", [1, 2])
def test_margins_are_read_at_the_tokens_where_choices_part(traces, twins, pieces, phase) -> None:
    model = small_model(pieces)
    pairs = make_pairs(traces, twins, "K1", pieces)
    found = sweep_margins(
        model, pairs, phase, head_masks([], 2, 4), pad_id=pieces.pad_token_id, branches_per_pass=64
    )
    assert found
    for effect in found:
        (pair,) = [pair for pair in pairs if pair.example == effect.example]
        event = phase_events(pair.trace, phase)[effect.event]
        for ids, value in ((pair.trace.tokens, effect.clean), (pair.corrupted, effect.corrupted)):
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0, event.query]
            rival = max(float(logits[foil]) for foil in event.foils)
            assert value == pytest.approx(float(logits[event.target]) - rival, abs=1e-4)

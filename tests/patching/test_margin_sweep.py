"""The sweep over branches against one whole forward pass an event and condition."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from mechdistill.models import shared_prefix
from mechdistill.models.tap import Intervention, Tap
from mechdistill.patching import margin_sweep
from mechdistill.patching.conditions import head_masks, heads_of
from mechdistill.patching.decision_sweep import DIRECTIONS, SITES
from mechdistill.patching.margin_sweep import sweep_margins, sweep_prompts
from mechdistill.patching.pairs import Pair, phase_events

from .made import random_tokens

LAYERS, HEADS = 3, 4
SETS = [
    frozenset([(1, 2)]),
    frozenset([(0, 0), (1, 3), (2, 1)]),
    frozenset(heads_of(LAYERS, HEADS)),
]


@pytest.fixture
def every_event(monkeypatch):
    """Keep events that the random model does not decide."""
    kept = []

    taken = margin_sweep._taken
    monkeypatch.setattr(margin_sweep, "_taken", lambda all_: kept.extend(all_) or taken(all_))
    return kept


def slow_margin(logits, event):
    return float(logits[event.target] - max(logits[foil] for foil in event.foils))


def forced(model, tokens, tap=None):
    with torch.no_grad():
        return model(torch.tensor([tokens]), tap=tap).logits[0]


def slow_patched(model, pair, event, heads, site, direction):
    """One unbatched, uncached forward pass with the donor's rows or outputs at the event."""
    sides = pair.trace.tokens, pair.corrupted
    donor, recipient = sides if direction == "denoise" else sides[::-1]
    read = Tap(torch.tensor([[event.query]]))
    forced(model, donor, read)
    kind = "rows" if site == "pattern" else "mixed"
    values = {layer: getattr(record, kind) for layer, record in read.record.items()}
    where = head_masks([heads], LAYERS, HEADS)[None]
    tap = Tap(read.queries, interventions=(Intervention(site, where, values),))
    return slow_margin(forced(model, recipient, tap)[event.query], event)


@pytest.mark.parametrize("phase", [1, 2])
@pytest.mark.parametrize("branches", [1, 7, 1000])
def test_sweep_equals_one_forward_pass_a_condition(model, pairs, phase, branches, every_event):
    masks = head_masks(SETS, LAYERS, HEADS)
    sweep_margins(model, pairs, phase, masks, pad_id=0, branches_per_pass=branches)
    expected = [(p, e) for p in pairs for e in phase_events(p.trace, phase)]
    assert [e.example for e in every_event] == [p.example for p, _ in expected]
    moved = 0.0
    for effect, (pair, event) in zip(every_event, expected, strict=True):
        clean = slow_margin(forced(model, pair.trace.tokens)[event.query], event)
        corrupted = slow_margin(forced(model, pair.corrupted)[event.query], event)
        assert effect.clean == pytest.approx(clean, abs=5e-5)
        assert effect.corrupted == pytest.approx(corrupted, abs=5e-5)
        for i, site in enumerate(SITES):
            for j, direction in enumerate(DIRECTIONS):
                for c, heads in enumerate(SETS):
                    value = slow_patched(model, pair, event, heads, site, direction)
                    assert effect.patched[i, j, c] == pytest.approx(value, abs=5e-5)
                    moved = max(moved, abs(value - (corrupted, clean)[j]))
    assert moved > 0.5


def test_sweep_with_a_shared_beginning_equals_one_without(model, pairs, every_event, monkeypatch):
    listed = random_tokens(20, 99)
    longer = [behind_a_list(pair, listed) for pair in pairs]
    masks = head_masks(SETS, LAYERS, HEADS)
    for least in (10, 1000):
        monkeypatch.setattr(shared_prefix, "LEAST", least)
        sweep_margins(model, longer, 2, masks, pad_id=0, branches_per_pass=7)
    half = len(every_event) // 2
    for one, other in zip(every_event[:half], every_event[half:], strict=True):
        assert one.clean == pytest.approx(other.clean, abs=5e-5)
        assert one.corrupted == pytest.approx(other.corrupted, abs=5e-5)
        assert one.patched == pytest.approx(other.patched, abs=5e-5)


def behind_a_list(pair, listed):
    """The pair with the same tokens before both prompts."""
    trace, by = pair.trace, len(listed)
    events = tuple(dataclasses.replace(event, query=event.query + by) for event in trace.events)
    moved = dataclasses.replace(
        trace,
        tokens=(*listed, *trace.tokens),
        prompt_length=trace.prompt_length + by,
        events=events,
    )
    return Pair(moved, pair.twin, (*listed, *pair.corrupted_prompt))


def slow_prompt_patched(model, pair, event, heads, direction):
    """The donor's rows at the event and at every prompt position, in one plain forward pass."""
    sides = pair.trace.tokens, pair.corrupted
    donor, recipient = sides if direction == "denoise" else sides[::-1]
    at = torch.tensor([sorted({*range(pair.trace.prompt_length), event.query})])
    read = Tap(at)
    forced(model, donor, read)
    values = {layer: record.rows for layer, record in read.record.items()}
    where = head_masks([heads], LAYERS, HEADS)[None].expand(1, at.shape[1], -1, -1)
    tap = Tap(at, interventions=(Intervention("pattern", where, values),))
    return slow_margin(forced(model, recipient, tap)[event.query], event)


@pytest.mark.parametrize("phase", [1, 2])
def test_patterns_at_all_prompt_positions_equal_whole_forward_passes(
    model, pairs, phase, every_event
):
    masks = head_masks(SETS, LAYERS, HEADS)
    sweep_prompts(model, pairs, phase, masks, pad_id=0, branches_per_pass=3)
    expected = [(p, e) for p in pairs for e in phase_events(p.trace, phase)]
    apart = 0.0
    for effect, (pair, event) in zip(every_event, expected, strict=True):
        clean = slow_margin(forced(model, pair.trace.tokens)[event.query], event)
        assert effect.clean == pytest.approx(clean, abs=5e-5)
        for j, direction in enumerate(DIRECTIONS):
            for c, heads in enumerate(SETS):
                value = slow_prompt_patched(model, pair, event, heads, direction)
                assert effect.patched[0, j, c] == pytest.approx(value, abs=5e-5)
                alone = slow_patched(model, pair, event, heads, "pattern", direction)
                apart = max(apart, abs(value - alone))
    assert apart > 0.1


def test_all_outputs_at_the_event_carry_the_whole_margin_over(model, pairs, every_event):
    """The query's token is the same on both sides, so nothing but the heads tells them apart."""
    masks = head_masks(SETS, LAYERS, HEADS)
    sweep_margins(model, pairs, 2, masks, pad_id=0, branches_per_pass=100)
    site = SITES.index("output")
    for effect in every_event:
        assert effect.patched[site, 0, -1] == pytest.approx(effect.clean, abs=5e-5)
        assert effect.patched[site, 1, -1] == pytest.approx(effect.corrupted, abs=5e-5)


@pytest.mark.parametrize("site", SITES)
def test_one_site_alone_is_as_among_both(model, pairs, site):
    def sweep(sites):
        masks = head_masks(SETS, LAYERS, HEADS)
        return sweep_margins(model, pairs, 1, masks, pad_id=0, branches_per_pass=100, sites=sites)

    both, one = sweep(SITES), sweep([site])
    assert len(one) == len(both) > 0
    for alone, among in zip(one, both):
        assert (alone.clean, alone.corrupted) == (among.clean, among.corrupted)
        assert (alone.patched[0] == among.patched[SITES.index(site)]).all()


def test_twin_that_is_the_prompt_itself_has_no_effect(model, pairs, every_event):
    same = [dataclasses.replace(p, corrupted_prompt=p.clean_prompt) for p in pairs]
    sweep_margins(model, same, 1, head_masks(SETS, LAYERS, HEADS), pad_id=0, branches_per_pass=100)
    for effect in every_event:
        assert effect.patched == pytest.approx(effect.clean, abs=5e-5)
        assert effect.corrupted == pytest.approx(effect.clean, abs=5e-5)


def test_decisions_that_the_model_does_not_take_are_left_out(model, pairs, every_event):
    found = sweep_margins(
        model, pairs, 2, head_masks([], LAYERS, HEADS), pad_id=0, branches_per_pass=100
    )
    assert 0 < len(found) < 5
    assert all(effect.clean > 0 for effect in found)


def test_departures_are_named_apart(model, pairs, every_event):
    nothing = head_masks([], LAYERS, HEADS)
    sweep_margins(model, pairs[:1], 2, nothing, pad_id=0, branches_per_pass=100)
    assert [e.metric for e in every_event] == ["margin", "margin_departure", "margin_answer"]


def test_pairs_without_events_are_passed_over(model, pairs, every_event):
    nothing = head_masks([], LAYERS, HEADS)
    sweep_margins(model, pairs, 1, nothing, pad_id=0, branches_per_pass=100)
    assert {e.example for e in every_event} == {"a", "b"}

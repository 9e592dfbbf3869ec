"""Ablation against one whole forward pass and one hook a head; attribution against its slope."""

from __future__ import annotations

import pytest
import torch

from mechdistill.models.families import family_of
from mechdistill.patching.ablation import ForcedTrace, ablate, attribute, mean_mixed
from mechdistill.patching.conditions import head_masks, heads_of

from .made import HEADS, LAYERS
from .made import event as made

ALL = heads_of(LAYERS, HEADS)
WIDTH = 8


@pytest.fixture
def traces(pairs):
    """The pairs' traces; the second is read twice at one position, out of order."""
    events = [list(pair.trace.events) for pair in pairs]
    events[1].append(made("within", events[1][0].query, 17, (18, 19)))
    return [ForcedTrace(pair.trace.tokens, own) for pair, own in zip(pairs, events)]


def slow_inputs(model, trace, query):
    """What enters each output projection at one position, of one plain pass: [L, H, D]."""
    seen, hooks = [], []
    for layer in range(LAYERS):
        projection = family_of(model).output_projection(model, layer)
        hooks.append(
            projection.register_forward_pre_hook(lambda m, given: seen.append(given[0][0, query]))
        )
    with torch.no_grad():
        model(torch.tensor([trace.tokens]))
    for hook in hooks:
        hook.remove()
    return torch.stack(seen).view(LAYERS, HEADS, -1)


def slow_margin(model, trace, event, heads, values, share=1.0, before=0):
    """Margin of one pass in which chosen heads are moved to (a share of the way) other values."""

    def moved(layer):
        def hook(module, given):
            mixed = given[0].clone()
            for head in [head for own, head in heads if own == layer]:
                at = slice(head * WIDTH, (head + 1) * WIDTH)
                mixed[0, event.query - before, at] += share * (
                    values[layer][head] - mixed[0, event.query - before, at]
                )
            return (mixed,)

        return hook

    hooks = [
        family_of(model).output_projection(model, layer).register_forward_pre_hook(moved(layer))
        for layer in range(LAYERS)
    ]
    with torch.no_grad():
        logits = model(torch.tensor([trace.tokens])).logits[0, event.query].double()
    for hook in hooks:
        hook.remove()
    return float(logits[event.target] - max(logits[foil] for foil in event.foils))


def decisions(traces):
    return [(trace, event) for trace in traces for event in trace.decisions]


def test_means_are_those_of_plain_passes(model, traces) -> None:
    means = mean_mixed(model, traces, pad_id=0)
    found = [
        slow_inputs(model, trace, query)
        for trace in traces
        for query in sorted({decision.query for decision in trace.decisions})
    ]
    expected = torch.stack(found).mean(0)
    assert torch.allclose(torch.stack([means[i] for i in range(LAYERS)]), expected, atol=1e-5)


@pytest.mark.parametrize("branches", [1, 5, 1000])
def test_ablation_equals_one_hooked_pass_a_head(model, traces, branches) -> None:
    means = mean_mixed(model, traces, pad_id=0)
    sets = [frozenset([head]) for head in ALL] + [frozenset(ALL)]
    masks = head_masks(sets, LAYERS, HEADS)
    found = ablate(model, traces, means, masks, pad_id=0, branches_per_pass=branches)
    assert found.shape == (len(decisions(traces)), 1 + len(sets))
    for row, (trace, event) in zip(found, decisions(traces), strict=True):
        slow = [slow_margin(model, trace, event, heads, means) for heads in [frozenset(), *sets]]
        assert row.tolist() == pytest.approx(slow, abs=5e-5)
    assert (found[:, 1:] - found[:, :1]).abs().max() > 0.5


def test_attribution_is_the_slope_of_ablation(model, traces) -> None:
    means = mean_mixed(model, traces, pad_id=0)
    found = attribute(model, traces, means, pad_id=0)
    assert found.shape == (len(decisions(traces)), LAYERS, HEADS)
    step = 1e-2
    for effects, (trace, event) in zip(found, decisions(traces), strict=True):
        for layer, head in ALL:
            up, down = (
                slow_margin(model, trace, event, [(layer, head)], means, share)
                for share in (step, -step)
            )
            slope = (up - down) / (2 * step)
            assert float(effects[layer, head]) == pytest.approx(slope, abs=5e-3, rel=2e-2)


def test_attribution_leaves_no_hook_and_no_gradient(model, traces) -> None:
    attribute(model, traces, mean_mixed(model, traces, pad_id=0), pad_id=0)
    assert all(weight.grad is None for weight in model.parameters())
    for layer in range(LAYERS):
        assert not family_of(model).output_projection(model, layer)._forward_pre_hooks


@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("branches", [1, 1000])
def test_ablation_before_the_decision_equals_one_hooked_pass_a_head(
    model, traces, before, branches
) -> None:
    means = mean_mixed(model, traces, pad_id=0, before=before)
    places = [
        (trace, query - before)
        for trace in traces
        for query in sorted({decision.query for decision in trace.decisions})
    ]
    plain = torch.stack([slow_inputs(model, trace, at) for trace, at in places])
    assert torch.allclose(torch.stack([means[i] for i in range(LAYERS)]), plain.mean(0), atol=1e-5)
    masks = head_masks([frozenset([head]) for head in ALL], LAYERS, HEADS)
    found = ablate(model, traces, means, masks, pad_id=0, branches_per_pass=branches, before=before)
    for row, (trace, event) in zip(found, decisions(traces), strict=True):
        sets = [[], *([head] for head in ALL)]
        slow = [slow_margin(model, trace, event, heads, means, before=before) for heads in sets]
        assert row.tolist() == pytest.approx(slow, abs=2e-5)

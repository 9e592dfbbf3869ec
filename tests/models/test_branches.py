"""Branches against whole runs of the model."""

from __future__ import annotations

import pytest
import torch

from mechdistill.models.branches import branch_rows, grow_trunk, run_branches
from mechdistill.models.tap import Intervention, Tap
from tests.models.tiny import HEADS, LAYERS


@pytest.fixture
def positions(batch):
    return batch.positions([[3, 3, 8, 8], [7, 0], [2, 6, 6]])


def test_branches_equal_the_plain_run(tapped, batch, positions):
    plain = tapped(batch.ids, attention_mask=batch.mask).logits
    trunk = grow_trunk(tapped, batch.ids, batch.mask)
    branches = run_branches(tapped, trunk, positions)
    for b, c in (positions >= 0).nonzero().tolist():
        expected = plain[b, positions[b, c]]
        torch.testing.assert_close(branches.logits[b, c], expected, atol=1e-5, rtol=1e-5)


def test_trunk_serves_many_calls(tapped, batch, positions):
    trunk = grow_trunk(tapped, batch.ids, batch.mask)
    first = run_branches(tapped, trunk, positions)
    again = run_branches(tapped, trunk, positions)
    assert trunk.cache[0][0].shape[2] == batch.ids.shape[1]
    assert torch.equal(first.logits, again.logits)


@pytest.mark.parametrize("site", ["pattern", "output"])
def test_patched_branch_equals_a_whole_run_patched_at_that_position(tapped, batch, positions, site):
    other = batch.ids.clone()
    other[batch.mask.bool()] = batch.ids[batch.mask.bool()].flip(0)
    donor_tap = Tap(positions)
    grow_trunk(tapped, other, batch.mask, donor_tap)
    where = torch.rand(*positions.shape, LAYERS, HEADS) < 0.5
    if site == "pattern":
        rows = {i: branch_rows(r.rows, positions) for i, r in donor_tap.record.items()}
        patch = Intervention(site, where, rows)
        whole = {i: r.rows for i, r in donor_tap.record.items()}
    else:
        whole = {i: r.mixed for i, r in donor_tap.record.items()}
        patch = Intervention(site, where, whole)
    trunk = grow_trunk(tapped, batch.ids, batch.mask)
    branches = run_branches(tapped, trunk, positions, (patch,))

    plain = tapped(batch.ids, attention_mask=batch.mask).logits
    effects = []
    for b, c in (positions >= 0).nonzero().tolist():
        only = torch.full_like(positions, -1)
        only[b, c] = positions[b, c]
        tap = Tap(only, interventions=(Intervention(site, where, whole),))
        logits = tapped(batch.ids, attention_mask=batch.mask, tap=tap).logits
        q = positions[b, c]
        torch.testing.assert_close(branches.logits[b, c], logits[b, q], atol=2e-5, rtol=2e-5)
        effects.append((logits[b, q] - plain[b, q]).abs().max().item())
    assert sorted(effects)[len(effects) // 2] > 0.1


def test_residuals_are_those_of_the_plain_run(tapped, batch, positions):
    trunk = grow_trunk(tapped, batch.ids, batch.mask)
    branches = run_branches(tapped, trunk, positions, residuals=True)
    hidden = tapped(batch.ids, attention_mask=batch.mask, output_hidden_states=True).hidden_states
    for b, c in (positions >= 0).nonzero().tolist():
        for layer in range(LAYERS - 1):  # transformers norms the last one
            expected = hidden[layer + 1][b, positions[b, c]]
            torch.testing.assert_close(
                branches.residuals[layer][b, c], expected, atol=1e-5, rtol=1e-5
            )


def test_hooks_are_gone_after_a_run(tapped, batch, positions):
    trunk = grow_trunk(tapped, batch.ids, batch.mask)
    run_branches(tapped, trunk, positions, residuals=True)
    assert not any(block._forward_hooks for block in tapped.model.layers)

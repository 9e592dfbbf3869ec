"""Margins and their gradients against slow loops and autograd."""

from __future__ import annotations

import pytest
import torch

from mechdistill.models.branches import grow_trunk
from mechdistill.models.margin import (
    final_margin,
    margin,
    margin_direction,
    margin_gradient,
    total_margin_gradients,
)
from mechdistill.models.read_out import ReadOut, token_rows
from tests.models.tiny import SIZE, rms_factor

TARGETS = torch.tensor([[[4, -1], [7, 9], [5, -1]], [[3, -1], [2, -1], [2, -1]], [[8, 1]] * 3])
FOILS = torch.tensor([[[6, 5, 2], [8, -1, -1], [1, -1, -1]]] * 3)


def slow_margin(logits, targets, foils):
    """Eq. 7, id by id."""
    hit = [logits[i] for i in targets.tolist() if i >= 0]
    miss = [logits[i] for i in foils.tolist() if i >= 0]
    return sum(hit) / len(hit) - sum(miss) / len(miss)


def test_margin_is_mean_target_logit_minus_mean_foil_logit():
    logits = torch.randn(3, 3, 11, generator=torch.Generator().manual_seed(0))
    margins = margin(logits, TARGETS, FOILS)
    for b in range(3):
        for s in range(3):
            expected = slow_margin(logits[b, s], TARGETS[b, s], FOILS[b, s])
            torch.testing.assert_close(margins[b, s], expected)


def test_margin_without_ids_is_zero():
    none = torch.full((1, 2), -1)
    assert margin(torch.randn(1, 9), none, none).tolist() == [0.0]


def logits_of(model, hidden, *, frozen=False):
    """The last norm, the unembedding and the cap written out."""
    factor = rms_factor(hidden.detach() if frozen else hidden, model.model.norm, model.config)
    logits = hidden * factor @ model.lm_head.weight.T
    cap = {"gemma2": 3.0}.get(model.config.model_type)
    return logits if cap is None else torch.tanh(logits / cap) * cap


def test_final_margin_is_that_of_the_logits(eager):
    hidden = torch.randn(3, 3, SIZE) * 3
    expected = margin(logits_of(eager, hidden), TARGETS, FOILS)
    found = final_margin(eager, hidden, TARGETS, FOILS)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    norm, head = eager.model.norm, eager.lm_head  # the oracle itself, against transformers' parts
    uncapped = head(norm(hidden))
    cap = ReadOut.of(eager).cap
    assert (cap is None) == torch.allclose(uncapped, logits_of(eager, hidden), atol=1e-4)


@pytest.mark.parametrize("frozen", [False, True])
def test_gradient_equals_autograd_through_the_final_norm_and_the_cap(eager, frozen):
    hidden = torch.randn(3, 3, SIZE, requires_grad=True)
    margin(logits_of(eager, hidden, frozen=frozen), TARGETS, FOILS).sum().backward()
    closed = margin_gradient(eager, hidden.detach(), TARGETS, FOILS, frozen_scale=frozen)
    torch.testing.assert_close(closed, hidden.grad, atol=1e-5, rtol=1e-5)


def test_frozen_pair_gradient_is_the_margin_gradient_of_the_start(eager):
    hidden = torch.randn(3, 3, SIZE)
    ids = torch.tensor([[[4, 6], [7, 8], [-1, -1]]] * 3)
    expected = margin_gradient(eager, hidden, ids[..., :1], ids[..., 1:])
    read_out, pairs = ReadOut.of(eager).frozen(), token_rows(eager, ids).detach().clone()
    with torch.no_grad():
        for weight in (eager.model.norm.weight, eager.lm_head.weight):
            weight.add_(1.0)
    found = read_out.pair_gradient(hidden, *pairs.unbind(2))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    assert found[:, 2].eq(0).all()


def test_direction_of_capped_logits_needs_the_residual(eager):
    if ReadOut.of(eager).cap is None:
        hidden = torch.randn(3, 3, SIZE)
        direction = margin_direction(eager, TARGETS, FOILS)
        expected = margin(eager.lm_head(hidden), TARGETS, FOILS)
        torch.testing.assert_close((direction * hidden).sum(-1), expected, atol=1e-5, rtol=1e-5)
    else:
        with pytest.raises(ValueError, match="depends on the residual"):
            margin_direction(eager, TARGETS, FOILS)


def total(model, batch, queries):
    trunk = grow_trunk(model, batch.ids, batch.mask)
    return total_margin_gradients(model, trunk, queries, TARGETS, FOILS)


def test_total_gradients_equal_one_backward_pass_per_position(eager, tapped, batch):
    """Each slot's margin alone, differentiated through the whole eager model."""
    lengths = batch.mask.sum(1).tolist()
    queries = batch.positions([[2, lengths[0] - 1, 4], [5, 6], [lengths[2] - 2]])
    gradients = total(tapped, batch, queries)
    assert gradients.shape == (3, 3, 3, 32)

    residuals = {}
    for index, block in enumerate(eager.model.layers):
        block.register_forward_hook(
            lambda m, args, out, index=index: (
                (out.retain_grad(), residuals.update({index: out}))[2:] or None
            )
        )
    for b in range(3):
        for s in range(3):
            q = int(queries[b, s])
            if q < 0:
                assert gradients[:, b, s].eq(0).all()
                continue
            logits = eager(batch.ids, attention_mask=batch.mask).logits[b, q]
            slow_margin(logits, TARGETS[b, s], FOILS[b, s]).backward()
            for layer in range(3):
                expected = residuals[layer].grad[b, q]
                torch.testing.assert_close(
                    gradients[layer, b, s], expected, atol=2e-5, rtol=1e-4, msg=f"{layer} {b} {s}"
                )


def test_total_gradient_after_the_last_layer_is_the_direct_one(tapped, batch):
    queries = batch.positions([[2, 3, 4]] * 3)
    gradients = total(tapped, batch, queries)
    seen = []
    hook = tapped.model.norm.register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    tapped(batch.ids, attention_mask=batch.mask)
    hook.remove()
    residual = seen[0][torch.arange(3)[:, None], queries]
    direct = margin_gradient(tapped, residual, TARGETS, FOILS)
    torch.testing.assert_close(gradients[-1], direct, atol=1e-5, rtol=1e-4)


def test_total_gradients_work_without_gradients_enabled_or_needed(tapped, batch):
    queries = batch.positions([[2, 3, 4]] * 3)
    expected = total(tapped, batch, queries)
    tapped.requires_grad_(False)
    with torch.no_grad():
        torch.testing.assert_close(total(tapped, batch, queries), expected)

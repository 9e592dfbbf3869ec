from __future__ import annotations

import torch

from mechdistill.models.residuals import reading_residuals


def test_stream_is_what_transformers_calls_hidden_states(tapped, batch):
    with reading_residuals(tapped) as stream:
        output = tapped(batch.ids, attention_mask=batch.mask, output_hidden_states=True)
    for layer in range(3):
        torch.testing.assert_close(stream.entering[layer], output.hidden_states[layer])
    normed = tapped.model.norm(stream.final)
    torch.testing.assert_close(normed, output.hidden_states[-1])  # transformers norms the last one


def test_stream_carries_its_graph(tapped, batch):
    with reading_residuals(tapped) as stream:
        tapped(batch.ids, attention_mask=batch.mask)
    stream.final.sum().backward()
    assert tapped.model.layers[0].self_attn.q_proj.weight.grad.abs().sum() > 0


def test_no_hook_stays_behind(tapped):
    with reading_residuals(tapped):
        pass
    assert not any(b._forward_hooks or b._forward_pre_hooks for b in tapped.model.layers)

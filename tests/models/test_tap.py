"""The tap against transformers' eager attention with returned weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import DynamicCache

from mechdistill.models.tap import (
    Intervention,
    Tap,
    _plain_weight,
    attach,
    head_writes,
    pooled_write,
    unrotate,
)
from tests.models.tiny import (
    HEADS,
    LAYERS,
    WIDTH,
    added_by_attention,
    before_rotary,
    inputs_and_outputs,
    is_gemma,
    rms_factor,
    rotary,
    row_logits,
    visible_keys,
)

TOLERANCE = {"atol": 1e-5, "rtol": 1e-5}


def slots(batch):
    """Unequal numbers of query positions, first and last tokens among them."""
    lengths = batch.mask.sum(1).tolist()
    return batch.positions([[0, 3, n - 1] if i else [n - 2, 5] for i, n in enumerate(lengths)])


def read(model, batch, **options):
    tap = Tap(slots(batch), **options)
    logits = model(batch.ids, attention_mask=batch.mask, tap=tap).logits
    return tap, logits


def at_slots(x, queries):
    """[B, T, ...] -> [B, Q, ...] by a slow loop, zeros where unused."""
    out = torch.zeros(*queries.shape, *x.shape[2:])
    for b in range(queries.shape[0]):
        for s in range(queries.shape[1]):
            if queries[b, s] >= 0:
                out[b, s] = x[b, queries[b, s]]
    return out


def test_rows_equal_eager_attention_weights(eager, tapped, batch):
    weights = eager(batch.ids, attention_mask=batch.mask, output_attentions=True).attentions
    tap, _ = read(tapped, batch)
    for layer in range(LAYERS):
        expected = at_slots(weights[layer].transpose(1, 2), tap.queries).transpose(1, 2)
        torch.testing.assert_close(tap.record[layer].rows, expected, **TOLERANCE)


def test_logits_equal_eager_logits_on_tokens(eager, tapped, batch):
    expected = eager(batch.ids, attention_mask=batch.mask).logits
    _, logits = read(tapped, batch)
    real = batch.mask.bool()
    torch.testing.assert_close(logits[real], expected[real], **TOLERANCE)


def test_rows_see_no_padding_no_future_and_nothing_beyond_the_window(tapped, batch):
    tap, _ = read(tapped, batch)
    for layer, record in tap.record.items():
        for b in range(3):
            for s in range(tap.queries.shape[1]):
                q = int(tap.queries[b, s])
                inside = visible_keys(
                    tapped.config, layer, int(batch.offset[b]), q, batch.ids.shape[1]
                )
                assert torch.equal(record.visible[b, s], inside & (q >= 0))
                assert record.rows[b, :, s, ~record.visible[b, s]].eq(0).all()
                if q >= 0:
                    torch.testing.assert_close(record.rows[b, :, s].sum(-1), torch.ones(HEADS))


def test_mixed_values_are_the_input_of_the_output_projection(eager, tapped, batch):
    seen = inputs_and_outputs(eager, batch, "self_attn.o_proj")
    tap, _ = read(tapped, batch)
    for layer in range(LAYERS):
        expected = at_slots(seen[layer][0][0], tap.queries).unflatten(-1, (HEADS, WIDTH))
        torch.testing.assert_close(tap.record[layer].mixed, expected.transpose(1, 2), **TOLERANCE)


def bias_share(model, layer, mixed):
    """What the output projection's bias adds to the residual [B, Q, d], norm included."""
    block = model.model.layers[layer]
    bias = block.self_attn.o_proj.bias
    return bias * norm_behind(model, layer, mixed)


def norm_behind(model, layer, mixed):
    """What the norm behind the block multiplies with [B, Q, d]; 1 without one."""
    block = model.model.layers[layer]
    if not is_gemma(model.config):
        return torch.ones(*mixed.shape[0:3:2], block.self_attn.o_proj.out_features)
    written = block.self_attn.o_proj(mixed.transpose(1, 2).flatten(2))
    return rms_factor(written, block.post_attention_layernorm, model.config)


def test_head_writes_and_the_bias_add_up_to_what_the_block_adds(eager, tapped, batch):
    added = added_by_attention(eager, batch)
    tap, _ = read(tapped, batch)
    for layer in range(LAYERS):
        mixed = tap.record[layer].mixed
        writes = head_writes(tapped, layer, mixed).sum(1) + bias_share(eager, layer, mixed)
        used = tap.queries >= 0
        expected = at_slots(added[layer], tap.queries)
        torch.testing.assert_close(writes[used], expected[used], **TOLERANCE)


def test_each_head_write_is_its_slice_of_the_projection(tapped, batch):
    tap, _ = read(tapped, batch)
    mixed = tap.record[1].mixed
    writes = head_writes(tapped, 1, mixed)
    weight = tapped.model.layers[1].self_attn.o_proj.weight
    factor = norm_behind(tapped, 1, mixed)
    for head in range(HEADS):
        expected = mixed[:, head] @ weight[:, head * WIDTH : (head + 1) * WIDTH].T * factor
        torch.testing.assert_close(writes[:, head], expected, **TOLERANCE)


class Adapted(nn.Linear):
    """A projection with a part that its weight does not show, as LoRA has."""

    def forward(self, x):
        return super().forward(x) + 0.1 * x.flip(-1)[..., : self.out_features]


@pytest.mark.parametrize("kind", ["adapted", "hooked"])
def test_writes_of_a_projection_that_is_more_than_its_weight_are_its_own(tapped, batch, kind):
    tap, _ = read(tapped, batch)
    mixed = tap.record[1].mixed
    block = tapped.model.layers[1]
    plain = block.self_attn.o_proj
    changed = Adapted(plain.in_features, plain.out_features) if kind == "adapted" else plain
    try:
        if kind == "hooked":
            hook = plain.register_forward_hook(lambda module, args, output: output * 2)
        block.self_attn.o_proj = changed
        writes = head_writes(tapped, 1, mixed)
        first = mixed.clone()
        first[:, 1:] = 0
        through, of_first, bias = (
            changed(x.transpose(1, 2).flatten(2)) for x in (mixed, first, torch.zeros_like(mixed))
        )
        factor = norm_behind(tapped, 1, mixed)
        torch.testing.assert_close(writes[:, 0], (of_first - bias) * factor, **TOLERANCE)
        torch.testing.assert_close(writes.sum(1), (through - bias) * factor, **TOLERANCE)
    finally:
        block.self_attn.o_proj = plain
        if kind == "hooked":
            hook.remove()


def test_weight_that_is_not_whole_and_in_memory_is_not_sliced():
    plain, hooked, partitioned, empty = (nn.Linear(4, 3, bias=False) for _ in range(4))
    assert _plain_weight(plain) is plain.weight
    hooked.register_forward_pre_hook(lambda module, args: None)
    partitioned.weight.ds_id = 7  # as DeepSpeed marks what it partitions
    empty.weight.data = torch.empty(0)
    offloaded = nn.Linear(4, 3, device="meta")
    for projection in (hooked, partitioned, empty, offloaded, Adapted(4, 3)):
        assert _plain_weight(projection) is None


def test_writes_of_a_part_of_the_mixture_add_up_to_those_of_the_whole(tapped, batch):
    """Also where a norm follows: its scale is that of the run, not of the part."""
    tap, _ = read(tapped, batch)
    mixed = tap.record[1].mixed
    part = mixed * torch.rand(mixed.shape[:3])[..., None]
    whole = head_writes(tapped, 1, mixed)
    parts = [head_writes(tapped, 1, x, run=mixed) for x in (part, mixed - part)]
    torch.testing.assert_close(parts[0] + parts[1], whole, **TOLERANCE)
    weights = torch.rand(HEADS)
    pooled = pooled_write(tapped, 1, part, weights, run=mixed)
    expected = (parts[0] * weights[:, None, None]).sum(1)
    torch.testing.assert_close(pooled, expected, **TOLERANCE)


def test_pooled_write_is_the_weighted_sum_of_head_writes(tapped, batch):
    tap, _ = read(tapped, batch)
    weights = torch.tensor([0.5, 0.0, 0.2, 0.3])
    mixed = tap.record[2].mixed
    expected = (head_writes(tapped, 2, mixed) * weights[:, None, None]).sum(1)
    torch.testing.assert_close(pooled_write(tapped, 2, mixed, weights), expected, **TOLERANCE)


def test_pooled_write_takes_weights_of_every_slot(tapped, batch):
    tap, _ = read(tapped, batch)
    mixed = tap.record[2].mixed
    weights = torch.rand(3, HEADS, tap.queries.shape[1])
    expected = (head_writes(tapped, 2, mixed) * weights[..., None]).sum(1)
    torch.testing.assert_close(pooled_write(tapped, 2, mixed, weights), expected, **TOLERANCE)
    same = (head_writes(tapped, 2, mixed) * weights[0, :, :, None]).sum(1)
    torch.testing.assert_close(pooled_write(tapped, 2, mixed, weights[0]), same, **TOLERANCE)


def test_queries_keys_and_values_are_those_of_the_logits(eager, tapped, batch):
    keys = batch.positions([[0, 1], [2], [3, 4, 5]])
    tap, _ = read(tapped, batch, keys=keys)
    groups = [0, 0, 1, 1]  # heads 0, 1 share the first key head, 2, 3 the second

    def picked(x, positions):
        return at_slots(x.transpose(1, 2), positions).transpose(1, 2)

    for layer, (_, hidden) in inputs_and_outputs(eager, batch, "input_layernorm").items():
        q, k, v = before_rotary(eager.model.layers[layer].self_attn, hidden)
        record = tap.record[layer]
        turned = rotary(eager.config, layer, q), rotary(eager.config, layer, k)
        torch.testing.assert_close(record.query, picked(turned[0], tap.queries), **TOLERANCE)
        torch.testing.assert_close(record.key, picked(turned[1], keys)[:, groups], **TOLERANCE)
        torch.testing.assert_close(record.value, picked(v, keys)[:, groups], **TOLERANCE)
        unturned = unrotate(tapped, layer, record.query, tap.queries)
        torch.testing.assert_close(unturned, picked(q, tap.queries), **TOLERANCE)
        unturned = unrotate(tapped, layer, record.key, keys)
        torch.testing.assert_close(unturned, picked(k, keys)[:, groups], **TOLERANCE)


def test_cache_gives_the_same_rows_as_one_pass(tapped, batch):
    whole, logits = read(tapped, batch)
    cache = DynamicCache()
    parts = []
    for begin, end in [(0, 12), (12, 18), (18, batch.ids.shape[1])]:
        tap = Tap(whole.queries)
        last = tapped(
            batch.ids[:, begin:end],
            attention_mask=batch.mask[:, :end],
            cache=cache,
            use_cache=True,
            tap=tap,
        ).logits
        parts.append((tap, end))
    real = batch.mask.bool()[:, 18:]
    torch.testing.assert_close(last[real], logits[:, 18:][real], **TOLERANCE)
    for layer in range(LAYERS):
        rows = torch.zeros_like(whole.record[layer].rows)
        mixed = torch.zeros_like(whole.record[layer].mixed)
        for tap, end in parts:  # a slot is used in exactly one part
            rows[..., :end] += tap.record[layer].rows
            mixed += tap.record[layer].mixed
        torch.testing.assert_close(rows, whole.record[layer].rows, **TOLERANCE)
        torch.testing.assert_close(mixed, whole.record[layer].mixed, **TOLERANCE)


def test_padding_changes_nothing_that_is_read(tapped, batch):
    tap, _ = read(tapped, batch)
    for b in range(3):
        start = int(batch.offset[b])
        alone = Tap((tap.queries[b : b + 1] - start).clamp(min=-1))
        tapped(batch.ids[b : b + 1, start:], tap=alone)
        rows = tap.record[2].rows[b, ..., start:]
        torch.testing.assert_close(alone.record[2].rows[0], rows, **TOLERANCE)
        torch.testing.assert_close(alone.record[2].mixed[0], tap.record[2].mixed[b], **TOLERANCE)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_equal_those_of_eager_attention(eager, tapped, batch, checkpointing):
    """A loss on rows, writes and logits, differentiated through both models."""
    if checkpointing:
        tapped.activation_checkpointing_enable()
    tapped.train()

    def loss(rows, writes, logits):
        return (rows**2).sum() + (writes**2).sum() + logits.logsumexp(-1).sum()

    tap = Tap(slots(batch))
    output = tapped(batch.ids, attention_mask=batch.mask, use_cache=False, tap=tap)
    used = tap.queries >= 0
    real = batch.mask.bool()
    total = 0.0
    for layer in range(LAYERS):
        writes = head_writes(tapped, layer, tap.record[layer].mixed)
        total = total + loss(tap.record[layer].rows, writes, output.logits[real])
    total.backward()

    mixed = {}
    hooks = [
        block.self_attn.o_proj.register_forward_pre_hook(
            lambda m, args, index=index: mixed.__setitem__(index, args[0])
        )
        for index, block in enumerate(eager.model.layers)
    ]
    output = eager(batch.ids, attention_mask=batch.mask, output_attentions=True)
    total = 0.0
    b, s = used.nonzero(as_tuple=True)
    q = tap.queries[b, s]
    for layer in range(LAYERS):
        rows = output.attentions[layer][b, :, q]
        z = mixed[layer][b, q].unflatten(-1, (HEADS, WIDTH))
        block = eager.model.layers[layer]
        weight = block.self_attn.o_proj.weight.unflatten(1, (HEADS, WIDTH))
        writes = torch.einsum("nhw,dhw->nhd", z, weight)
        if is_gemma(eager.config):
            whole = block.self_attn.o_proj(mixed[layer][b, q])
            factor = rms_factor(whole, block.post_attention_layernorm, eager.config)
            writes = writes * factor[:, None]
        total = total + loss(rows, writes, output.logits[real])
    total.backward()
    for hook in hooks:
        hook.remove()
    for (name, p), expected in zip(tapped.named_parameters(), eager.parameters(), strict=True):
        scale = float(expected.grad.abs().max())
        torch.testing.assert_close(p.grad, expected.grad, atol=2e-5 * scale, rtol=0, msg=name)


def intervention(site, record, where):
    kind = "rows" if site == "pattern" else "mixed"
    return Intervention(site, where, {i: getattr(r, kind).detach() for i, r in record.items()})


@pytest.mark.parametrize("site", ["pattern", "output"])
def test_identity_patch_changes_nothing(tapped, batch, site):
    tap, logits = read(tapped, batch)
    where = torch.ones(*tap.queries.shape, LAYERS, HEADS, dtype=torch.bool)
    own = intervention(site, tap.record, where)
    _, patched = read(tapped, batch, interventions=(own,))
    torch.testing.assert_close(patched, logits, **TOLERANCE)


class EagerPatch(nn.Module):
    """A second implementation: attention written out, one row, head and position at a time."""

    def __init__(self, attention, layer, queries, where, donor, site):
        super().__init__()
        self.inner, self.layer = attention, layer
        self.queries, self.where, self.donor, self.site = queries, where, donor, site

    def forward(self, hidden_states, attention_mask, **_):
        config = self.inner.config
        q, k, v = before_rotary(self.inner, hidden_states)
        q, k = rotary(config, self.layer, q), rotary(config, self.layer, k)
        mixed = torch.zeros(*hidden_states.shape[:2], HEADS, WIDTH)
        for b in range(len(q)):
            for h in range(HEADS):
                logits = row_logits(config, q[b, h], k[b, h // 2]) + attention_mask[b, 0]
                rows = logits.softmax(-1)
                for s, position in enumerate(self.queries[b].tolist()):
                    chosen = position >= 0 and bool(self.where[b, s, self.layer, h])
                    if chosen and self.site == "pattern":
                        rows[position] = self.donor[self.layer][b, h, s]
                mixed[b, :, h] = rows @ v[b, h // 2]
                for s, position in enumerate(self.queries[b].tolist()):
                    chosen = position >= 0 and bool(self.where[b, s, self.layer, h])
                    if chosen and self.site == "output":
                        mixed[b, position, h] = self.donor[self.layer][b, h, s]
        return self.inner.o_proj(mixed.flatten(2)), None


@pytest.mark.parametrize("site", ["pattern", "output"])
def test_patch_equals_attention_written_out(eager, tapped, batch, site):
    other = batch.ids.clone()
    other[batch.mask.bool()] = batch.ids[batch.mask.bool()].flip(0)
    donor_tap = Tap(slots(batch))
    tapped(other, attention_mask=batch.mask, tap=donor_tap)
    where = torch.rand(*slots(batch).shape, LAYERS, HEADS) < 0.5
    patch = intervention(site, donor_tap.record, where)
    _, plain = read(tapped, batch)
    tap, patched = read(tapped, batch, interventions=(patch,))

    for index, block in enumerate(eager.model.layers):
        block.self_attn = EagerPatch(block.self_attn, index, tap.queries, where, patch.donor, site)
    expected = eager(batch.ids, attention_mask=batch.mask).logits
    real = batch.mask.bool()
    torch.testing.assert_close(patched[real], expected[real], atol=2e-5, rtol=2e-5)
    assert (patched - plain)[real].abs().max() > 0.1


def test_record_holds_the_patched_rows(tapped, batch):
    tap, _ = read(tapped, batch)
    where = torch.ones(*tap.queries.shape, LAYERS, HEADS, dtype=torch.bool)
    first = torch.zeros_like(tap.record[0].rows)
    first[torch.arange(3), :, :, batch.offset] = 1.0
    donor = dict.fromkeys(range(LAYERS), first)
    patched, _ = read(tapped, batch, interventions=(Intervention("pattern", where, donor),))
    used = (tap.queries >= 0)[:, None, :, None]
    assert torch.equal(patched.record[1].rows, first * used)


def test_donor_mass_on_padding_is_dropped(tapped, batch):
    """Whatever stands at the pads must not change a patched run."""
    where = torch.ones(*slots(batch).shape, LAYERS, HEADS, dtype=torch.bool)
    rows = torch.full((3, HEADS, where.shape[1], batch.ids.shape[1]), 0.04)
    patch = Intervention("pattern", where, dict.fromkeys(range(LAYERS), rows))
    _, one = read(tapped, batch, interventions=(patch,))
    changed = torch.where(batch.mask.bool(), batch.ids, 17)
    tap = Tap(slots(batch), interventions=(patch,))
    two = tapped(changed, attention_mask=batch.mask, tap=tap).logits
    real = batch.mask.bool()
    torch.testing.assert_close(one[real], two[real], **TOLERANCE)


def test_heads_that_are_not_chosen_keep_their_rows(tapped, batch):
    tap, _ = read(tapped, batch)
    where = torch.zeros(*tap.queries.shape, LAYERS, HEADS, dtype=torch.bool)
    where[:, :, 0, 2] = True
    donor = {0: torch.roll(tap.record[0].mixed, 1, 0)}
    patched, _ = read(tapped, batch, interventions=(Intervention("output", where, donor),))
    kept = [0, 1, 3]
    before, after = tap.record[0].mixed, patched.record[0].mixed
    torch.testing.assert_close(after[:, kept], before[:, kept])
    assert (after[:, 2] - before[:, 2]).abs().max() > 0.1


def test_one_donor_serves_the_whole_batch(tapped, batch):
    """Mean ablation: the mean output over a reference set, for all rows and slots."""
    tap, _ = read(tapped, batch)
    where = torch.rand(*tap.queries.shape, LAYERS, HEADS) < 0.5
    mean = tap.record[1].mixed.mean((0, 2), keepdim=True)
    spread = mean.expand_as(tap.record[1].mixed)
    _, one = read(tapped, batch, interventions=(Intervention("output", where, {1: mean}),))
    _, all_ = read(tapped, batch, interventions=(Intervention("output", where, {1: spread}),))
    torch.testing.assert_close(one, all_)
    row = tap.record[1].rows[:1, :, :1]
    spread = row.expand_as(tap.record[1].rows)
    _, one = read(tapped, batch, interventions=(Intervention("pattern", where, {1: row}),))
    _, all_ = read(tapped, batch, interventions=(Intervention("pattern", where, {1: spread}),))
    torch.testing.assert_close(one, all_)


def test_patch_is_differentiable(tapped, batch):
    tap, _ = read(tapped, batch)
    where = torch.ones(*tap.queries.shape, LAYERS, HEADS, dtype=torch.bool)
    donor = tap.record[1].mixed.detach().double().float().requires_grad_()
    _, logits = read(tapped, batch, interventions=(Intervention("output", where, {1: donor}),))
    logits.logsumexp(-1).sum().backward()
    assert donor.grad.abs().sum() > 0


def test_wrong_shapes_are_refused(tapped, batch):
    with pytest.raises(ValueError, match="2 rows"):
        tapped(batch.ids, attention_mask=batch.mask, tap=Tap(torch.zeros(2, 1, dtype=torch.long)))
    where = torch.ones(3, 3, LAYERS, HEADS, dtype=torch.bool)
    short = Intervention("pattern", where, {0: torch.zeros(3, HEADS, 3, 5)})
    with pytest.raises(ValueError, match="5 keys"):
        read(tapped, batch, interventions=(short,))


def test_only_requested_layers_are_recorded(tapped, batch):
    tap, _ = read(tapped, batch, layers=frozenset({1}))
    assert set(tap.record) == {1}


def test_attach_does_not_touch_a_model_with_the_same_configuration(eager):
    twin = type(eager)(eager.config)
    attach(twin)
    assert eager.config._attn_implementation == "eager"
    assert all(m.config is twin.config for m in twin.modules() if hasattr(m, "config"))

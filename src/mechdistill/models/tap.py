"""Read and replace what attention heads do, at chosen query positions only.

An attention function is registered with transformers beside its own. The main path stays the fused
kernel; attention rows are computed beside it only at the positions asked for, never as an n x n
matrix. Keyword arguments of ``model(...)`` reach that function, so a tap is passed like any other::

    model = attach(model)
    tap = Tap(queries=batch.positions(positions))
    model(batch.ids, attention_mask=batch.mask, tap=tap)
    tap.record[layer].rows

Letters in shapes: B batch, L layers, H query heads, KV key heads, Q query slots, P key slots,
K keys of the call (cached ones first), T tokens of the call, D head width, d residual width.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from mechdistill.models.attention_rows import attention_rows, capped_attention, mix
from mechdistill.models.families import check, family_of

IMPLEMENTATION = "mechdistill_tap"
"""Name under which transformers knows the tapped attention."""

Site = Literal["pattern", "output"]
"""What of a head is replaced: its attention row, or its mixed value."""

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Intervention:
    """Replace something of chosen heads at chosen slots by a donor's.

    site "pattern": the head's row is replaced, values stay those of this run. Mass that the donor
    puts on keys that are invisible here is dropped, so that padding can never leak in.
    site "output": the head's mixed value (what enters the output projection) is replaced.

    Args:
        where: which head acts at which slot, [B, Q, L, H].
        donor: layer -> rows [B, H, Q, K] or mixed values [B, H, Q, D]; B, Q may be 1 (broadcast).
    """

    site: Site
    where: Tensor
    donor: Mapping[int, Tensor]


@dataclass(frozen=True)
class LayerRecord:
    """What one layer's heads did at the slots, after interventions. Unused slots hold zeros.

    Args:
        rows: attention rows, fp32, [B, H, Q, K]; 0 on invisible keys.
        visible: which keys a slot may see, [B, Q, K].
        query: queries as they enter the logits (after rotary), [B, H, Q, D].
        mixed: the rows' mixture of values, the input of the output projection, [B, H, Q, D].
        key: keys at the key slots as they enter the logits, each group's key repeated to its heads,
            [B, H, P, D]; None unless asked for.
        value: values at the key slots, in the same way.
    """

    rows: Tensor
    visible: Tensor
    query: Tensor
    mixed: Tensor
    key: Tensor | None
    value: Tensor | None


@dataclass
class Tap:
    """What to read and what to replace in one forward pass.

    Positions count on the padded key axis, cached keys included; -1 marks an unused slot. Slots
    whose position is not among the tokens of the call are unused too.

    Args:
        queries: query positions, [B, Q].
        keys: positions whose keys and values are read, [B, P]; None reads none.
        layers: layers to record; None means all. Interventions act in every layer that has a donor.
        interventions: applied in this order.
        recording: whether to record at all (patched runs need no rows of their own).
        record: layer -> what was read; filled by the forward pass.
    """

    queries: Tensor
    keys: Tensor | None = None
    layers: frozenset[int] | None = None
    interventions: tuple[Intervention, ...] = ()
    recording: bool = True
    record: dict[int, LayerRecord] = field(default_factory=dict)

    def records(self, layer: int) -> bool:
        """Whether this layer is to be recorded."""
        return self.recording and (self.layers is None or layer in self.layers)

    def replaces(self, layer: int) -> bool:
        """Whether some intervention has a donor for this layer."""
        return any(layer in intervention.donor for intervention in self.interventions)


def attach(model: Model) -> Model:
    """Route a transformers model's attention through the tap; returns the same model.

    The model gets a configuration of its own: two models that share one configuration object would
    otherwise share the attention implementation as well.

    Raises:
        InputError: no adapter fits the model (see `mechdistill.models.families`).
    """
    check(model)
    shared = model.config
    own = copy.deepcopy(shared)
    for module in model.modules():
        if getattr(module, "config", None) is shared:
            module.config = own
    model.set_attn_implementation(IMPLEMENTATION)  # type: ignore[operator]
    return model


def tapped_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    tap: Tap | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Fused attention, and the tap's work at its slots.

    Soft-capped attention, for which there is no fused kernel, is written out in blocks of rows.

    Args:
        query: [B, H, T, D] after rotary.
        key, value: [B, KV, K, D] after the cache's update, not repeated.
        attention_mask: [B, 1, T, K], true where a key is visible (padding, later tokens and keys
            beyond the layer's window are not); None is plain causal attention.

    Returns:
        mixed values [B, T, H, D], and None for the weights that nobody asked for.
    """
    if attention_mask is not None and attention_mask.dtype != torch.bool:
        raise TypeError(f"the tap needs a boolean mask, not {attention_mask.dtype}")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if softcap is None:
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    else:
        output = capped_attention(
            query, key, value, attention_mask, scaling=scale, cap=softcap, dropout=dropout
        )
    layer: int = module.layer_idx  # type: ignore[assignment]
    if tap is None or not (tap.records(layer) or tap.replaces(layer)):
        return output, None
    if tap.queries.shape[0] != query.shape[0]:
        raise ValueError(f"tap has {tap.queries.shape[0]} rows, the batch has {query.shape[0]}")
    _refuse_cropped_keys(key, **kwargs)

    first = key.shape[2] - query.shape[2]
    used = (tap.queries >= first) & (tap.queries < key.shape[2])
    index = (tap.queries - first).where(used, 0)
    visible = _visible_keys(attention_mask, tap.queries, index, used, key.shape[2])
    mixed = _at_slots(output.transpose(1, 2), index, used)

    for intervention in tap.interventions:
        donor = intervention.donor.get(layer)
        if donor is None:
            continue
        chosen = (intervention.where[:, :, layer] & used[..., None]).transpose(1, 2)[..., None]
        if intervention.site == "pattern":
            donor = mix(_allowed(donor, visible), value)
        mixed = torch.where(chosen, donor.to(mixed.dtype), mixed)
    if tap.replaces(layer):
        row, slot = used.nonzero(as_tuple=True)
        output = output.index_put((row, index[row, slot]), mixed.transpose(1, 2)[row, slot])

    if tap.records(layer):
        at = _at_slots(query, index, used)
        rows = attention_rows(at, key, visible, scale, softcap)
        for intervention in tap.interventions:
            if intervention.site == "pattern" and layer in intervention.donor:
                chosen = (intervention.where[:, :, layer] & used[..., None]).transpose(1, 2)
                donor = _allowed(intervention.donor[layer], visible)
                rows = torch.where(chosen[..., None], donor.to(rows.dtype), rows)
        heads = query.shape[1]
        tap.record[layer] = LayerRecord(
            rows,
            visible,
            at,
            mixed,
            None if tap.keys is None else _at_keys(key, tap.keys, heads),
            None if tap.keys is None else _at_keys(value, tap.keys, heads),
        )
    return output, None


# The mask function must be registered under the same name: without it transformers hands over no
# mask at all, and padding and sliding windows are silently ignored.
AttentionInterface.register(IMPLEMENTATION, tapped_attention)
AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)


def head_writes(model: nn.Module, layer: int, mixed: Tensor, run: Tensor | None = None) -> Tensor:
    """Delta^h(q): what each head adds to the residual stream, bias excluded.

    Each head's values go through its own columns of the output projection where that is a plain
    weight in memory. Where it is sharded, quantised, adapted or offloaded there is none to slice:
    then block-diagonal input goes through the projection itself, at H times the operations. A norm
    between projection and residual is linear once its scale is known; the scale is that of the
    whole block at the slot.

    Args:
        mixed: mixed values [B, H, Q, D].
        run: where `mixed` is only a part of what the heads mixed: all of it, [B, H, Q, D].

    Returns:
        writes [B, H, Q, d]; their sum over heads and the bias's share are what the block adds.
    """
    batch, heads, slots, width = mixed.shape
    whole = mixed if run is None else run
    adapter = family_of(model)
    projection = adapter.output_projection(model, layer)
    weight = _plain_weight(projection)
    if weight is None:
        alone = torch.eye(heads, dtype=mixed.dtype, device=mixed.device)
        blocks = mixed[:, :, :, None, :] * alone[None, :, None, :, None]
        blocks = blocks.reshape(batch, heads, slots, heads * width)
        return _written(model, layer, blocks, whole)
    writes = torch.einsum("bhqe,dhe->bhqd", mixed, weight.reshape(-1, heads, width))
    norm = adapter.norm_behind_attention(model, layer)
    if norm is None:
        return writes
    return _normed(writes, projection(_side_by_side(whole)), norm)


def pooled_write(
    model: nn.Module, layer: int, mixed: Tensor, weights: Tensor, run: Tensor | None = None
) -> Tensor:
    """Sum of the heads' writes, each times its weight, in one call of the output projection.

    Args:
        mixed: mixed values [B, H, Q, D].
        weights: one a head, [H]; or one a head and slot, [H, Q] or [B, H, Q].
        run: as in `head_writes`.

    Returns:
        [B, Q, d], bias excluded.
    """
    per_slot = weights[:, None] if weights.ndim == 1 else weights
    # in the heads' precision: the projection's weight has it
    weighted = _side_by_side(mixed * per_slot[..., None].to(mixed.dtype))
    return _written(model, layer, weighted, mixed if run is None else run)[:, 0]


def unrotate(model: nn.Module, layer: int, x: Tensor, positions: Tensor) -> Tensor:
    """Queries or keys of a layer as they were before the rotary embedding.

    Args:
        x: [B, H, N, D] after rotary.
        positions: positions on the padded key axis [B, N]; -1 (unused) returns x itself.
    """
    cosines, sines = family_of(model).rotation(model, layer, x, positions.clamp(min=0))
    cosines, sines = cosines[:, None].float(), sines[:, None].float()
    first, second = x.float().chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return ((x * cosines - turned * sines) / (cosines**2 + sines**2)).to(x.dtype)


def _written(model: nn.Module, layer: int, x: Tensor, run: Tensor) -> Tensor:
    """What inputs of the output projection, [B, N, Q, H * D], add to the residual [B, N, Q, d]."""
    adapter = family_of(model)
    projection = adapter.output_projection(model, layer)
    norm = adapter.norm_behind_attention(model, layer)
    if norm is None:
        return _without_bias(projection, x, projection(x))
    # one call for both: a sharded weight is gathered once
    both: Tensor = projection(torch.cat([x, _side_by_side(run)], dim=1))
    return _normed(_without_bias(projection, x, both[:, :-1]), both[:, -1:], norm)


def _side_by_side(mixed: Tensor) -> Tensor:
    """Mixed values [B, H, Q, D] as the output projection takes them [B, 1, Q, H * D]."""
    return mixed.transpose(1, 2).flatten(2)[:, None]


def _normed(writes: Tensor, block: Tensor, norm: tuple[Tensor, float]) -> Tensor:
    """Writes [B, N, Q, d] behind the norm of what the whole block writes [B, 1, Q, d]."""
    gain, epsilon = norm
    scale = (block.float().square().mean(-1, keepdim=True) + epsilon).rsqrt()
    return (writes * scale * gain).to(writes.dtype)


def _plain_weight(projection: nn.Module) -> Tensor | None:
    """Weight [d, H * D] of a projection that is nothing but a linear map in memory, else None."""
    # the exact types: adapters and quantised layers are subclasses, and so are sharded tensors;
    # DeepSpeed empties the parameters that it partitions, accelerate sends offloaded ones to meta
    hooked = projection._forward_pre_hooks or projection._forward_hooks
    if type(projection) is not nn.Linear or hooked:
        return None
    weight: Tensor = projection.weight
    whole = weight.shape == (projection.out_features, projection.in_features)
    if type(weight) not in (Tensor, nn.Parameter) or weight.is_meta or not whole:
        return None
    return None if hasattr(weight, "ds_id") or hasattr(projection, "_hf_hook") else weight


def _without_bias(projection: nn.Module, x: Tensor, written: Tensor) -> Tensor:
    """Less the projection of nothing: that is its bias, also where it is sharded or wrapped."""
    if isinstance(projection, nn.Linear) and projection.bias is None:
        return written
    bias: Tensor = projection(x.new_zeros(1, x.shape[-1]))
    return written - bias


def _refuse_cropped_keys(key: Tensor, **kwargs: Any) -> None:
    """A cache that forgets keys beyond the window would shift the tap's positions."""
    positions, window = kwargs.get("position_ids"), kwargs.get("sliding_window")
    if window is not None and positions is not None and int(positions.max()) >= key.shape[2]:
        raise ValueError(
            "the cache has dropped keys beyond the sliding window: pass cache=DynamicCache(), "
            "without the configuration, which keeps them"
        )


def _visible_keys(
    mask: Tensor | None, queries: Tensor, index: Tensor, used: Tensor, keys: int
) -> Tensor:
    """[B, Q, K]; a missing mask means plain causal attention without padding."""
    if mask is None:
        visible = torch.arange(keys, device=queries.device) <= queries[..., None]
    else:
        mask = mask[:, 0].expand(len(queries), -1, -1)
        visible = mask.gather(1, index[..., None].expand(-1, -1, keys))
    return visible & used[..., None]


def _at_slots(x: Tensor, index: Tensor, used: Tensor) -> Tensor:
    """[B, H, T, D] -> [B, H, Q, D], zeros at unused slots."""
    shape = (x.shape[0], x.shape[1], index.shape[1], x.shape[3])
    taken = x.gather(2, index[:, None, :, None].expand(shape))
    return taken * used[:, None, :, None]


def _at_keys(x: Tensor, keys: Tensor, heads: int) -> Tensor:
    """[B, KV, K, D] -> [B, H, P, D], zeros at unused slots."""
    taken = _at_slots(x, keys.clamp(min=0), keys >= 0)
    return taken.repeat_interleave(heads // x.shape[1], dim=1)


def _allowed(donor: Tensor, visible: Tensor) -> Tensor:
    if donor.shape[-1] != visible.shape[-1]:
        raise ValueError(f"donor rows have {donor.shape[-1]} keys, this run {visible.shape[-1]}")
    return donor * visible[:, None]  # [B, H, Q, K] also when the donor is the same for all B

"""Run one position many times over, as parallel tokens that share one cache.

A causal model's computation at position q needs only the keys and values of earlier positions. A
branch is position q run again on those of the plain run: many branches, of the same position or of
several, go through the model as the tokens of one call, each seeing the keys before its position
and itself, and no other branch. Patching conditions, which differ only at q, cost one token each
and copy no cache. A branch may also be a stretch: position q and those behind it, each seeing the
branch's own tokens before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from mechdistill.models.families import family_of
from mechdistill.models.shared_prefix import SharedPrefix, own_positions, padding
from mechdistill.models.tap import Intervention, Tap


@dataclass(frozen=True)
class Trunk:
    """The plain run that branches leave from.

    Args:
        ids, mask: left-padded tokens [B, T].
        cache: layer -> keys and values [B, KV, T, D].
        start: column of the batch at which rotary positions of each row begin, [B].
    """

    ids: Tensor
    mask: Tensor
    cache: tuple[tuple[Tensor, Tensor], ...]
    start: Tensor

    @classmethod
    def of(
        cls, ids: Tensor, mask: Tensor, cache: DynamicCache, start: Tensor | None = None
    ) -> Trunk:
        """From the cache that a pass over the whole batch filled; `start` is column 0 if None."""
        layers: Any = cache.layers
        kept = tuple((layer.keys, layer.values) for layer in layers)
        return cls(ids, mask, kept, mask.new_zeros(len(mask)) if start is None else start)

    def rows(self, chosen: Tensor | slice) -> Trunk:
        """Some rows of the batch, in the order asked for; a row may be asked for more than once."""
        cache = tuple((keys[chosen], values[chosen]) for keys, values in self.cache)
        return Trunk(self.ids[chosen], self.mask[chosen], cache, self.start[chosen])


@dataclass(frozen=True)
class Branches:
    """Results of the branches, one column a branch.

    Args:
        logits: [B, C, V].
        residuals: the residual stream after each layer, [B, C, d] each; empty unless asked for.
    """

    logits: Tensor
    residuals: tuple[Tensor, ...]


@torch.no_grad()
def grow_trunk(
    model: Any,
    ids: Tensor,
    mask: Tensor,
    tap: Tap | None = None,
    prefix: SharedPrefix | None = None,
) -> Trunk:
    """Run the whole batch once and keep all keys and values; a tap may read on the way.

    Args:
        prefix: of these sequences; the tap sees nothing of what is read with it.
    """
    if prefix is None:
        cache = DynamicCache()
        model(ids, attention_mask=mask, cache=cache, use_cache=True, logits_to_keep=1, tap=tap)
        return Trunk.of(ids, mask, cache)
    cache = prefix.cache(mask)
    model(
        ids[:, prefix.length :],
        attention_mask=mask,
        position_ids=own_positions(mask)[:, prefix.length :],
        cache=cache,
        use_cache=True,
        logits_to_keep=1,
        tap=tap,
    )
    return Trunk.of(ids, mask, cache, padding(mask))


def run_branches(
    model: Any,
    trunk: Trunk,
    positions: Tensor,
    interventions: tuple[Intervention, ...] = (),
    *,
    residuals: bool = False,
    steps: int = 1,
) -> Branches:
    """Run positions again.

    Args:
        positions: on the trunk's padded axis, [B, C]; -1 = unused.
        interventions: slots are the first tokens of the C branches; donor rows run over T + C keys
            (see `branch_rows`), for branches of one token alone.
        residuals: keep the residual stream after each layer, with its graph, for gradients.
        steps: tokens of each branch, the position's own and those behind it; logits are the last's.
    """
    batch, length = trunk.ids.shape
    count = positions.shape[1]
    begin = positions.clamp(min=0).repeat_interleave(steps, dim=1)
    step = torch.arange(steps, device=begin.device).repeat(count)
    branch = torch.arange(count, device=begin.device).repeat_interleave(steps)
    at = (begin + step).clamp(max=length - 1)
    keys = torch.arange(length, device=at.device)
    behind = step[:, None] - step
    own = (branch[:, None] == branch) & (behind >= 0)

    def visible(window: int | None) -> Tensor:
        """[B, 1, N, T + N]: keys of the trunk before the branch, and the branch's own."""
        seen = (keys < begin[..., None]) & trunk.mask.bool()[:, None]
        near = own
        if window is not None:
            seen &= keys > at[..., None] - window
            near = own & (behind < window)
        return torch.cat([seen, near.expand(batch, -1, -1)], dim=2)[:, None]

    family = family_of(model)
    tap = None
    if interventions:
        first = length + torch.arange(0, count * steps, steps, device=at.device)
        slots = first.expand(batch, -1)
        tap = Tap(slots, interventions=interventions, recording=False)
    kept: list[Tensor] = []
    hooks = []
    if residuals:
        hooks = [
            block.register_forward_hook(lambda module, inputs, output: kept.append(_leaf(output)))
            for block in family.blocks(model)
        ]
    try:
        output = model(
            trunk.ids.gather(1, at),
            attention_mask=family.masks(model, visible),
            position_ids=(at - trunk.start[:, None]).clamp(min=0),
            cache=DynamicCache(trunk.cache),
            use_cache=True,
            logits_to_keep=torch.arange(steps - 1, count * steps, steps, device=at.device),
            tap=tap,
        )
    finally:
        for hook in hooks:
            hook.remove()
    return Branches(output.logits, tuple(kept))


def branch_rows(rows: Tensor, positions: Tensor) -> Tensor:
    """Attention rows of the plain run in the key axis of branches.

    The mass on the position itself moves from the trunk's key to the branch's own.

    Args:
        rows: rows at the branches' positions [B, H, C, T].
        positions: [B, C].

    Returns:
        [B, H, C, T + C].
    """
    count = positions.shape[1]
    own = positions.clamp(min=0)[:, None, :, None].expand(*rows.shape[:3], 1)
    mass = rows.gather(3, own)
    before = rows.scatter(3, own, 0.0)
    return torch.cat([before, mass * torch.eye(count, device=mass.device)], dim=3)


def _leaf(output: Any) -> Tensor:
    """The residual stream of a layer as a tensor whose gradient can be asked for."""
    residual: Tensor = output[0] if isinstance(output, tuple) else output
    if not residual.requires_grad:
        residual.requires_grad_()
    return residual

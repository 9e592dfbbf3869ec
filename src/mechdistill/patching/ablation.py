"""What single heads do for a decision: exact mean-ablation, and its first-order estimate.

The tokens of a trace are forced upon the model. At a decision's query position, and nowhere else, a
head's mixed value (what enters the output projection) is replaced by its mean over a reference set
of positions; everything before the position stays as it was, so a head costs one branch over cached
keys (see `mechdistill.models.branches`). `attribute` estimates all those effects from the gradient
of the margin at the plain run, in one backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mechdistill.models.batching import left_pad, pad_right
from mechdistill.models.branches import Trunk, grow_trunk, run_branches
from mechdistill.models.families import family_of
from mechdistill.models.margin import decision_margin
from mechdistill.models.tap import Intervention, Tap
from mechdistill.patching.decision_sweep import SIDE_BY_SIDE, Decision

TRACES_PER_PASS = 20
"""Traces whose plain runs are held in memory together."""

Means = Mapping[int, Tensor]
"""Layer -> mean mixed value of each head [H, D]."""


@dataclass(frozen=True)
class ForcedTrace:
    """Token ids of prompt and trace, and the decisions to read, one at least.

    Decisions at one position share its runs: to read another pair of tokens there costs nothing.
    """

    tokens: tuple[int, ...]
    decisions: Sequence[Decision]


@torch.inference_mode()
def mean_mixed(
    model: Any, traces: Sequence[ForcedTrace], *, pad_id: int, before: int = 0
) -> dict[int, Tensor]:
    """Mean mixed value of every head over the decisions' positions: layer -> [H, D].

    Args:
        before: over the positions so many tokens before them.
    """
    sums: dict[int, Tensor] = {}
    count = 0
    for forced in plain_runs(model, traces, pad_id, before):
        count += len(forced.at)
        for layer, mixed in forced.mixed.items():
            total = mixed[:, :, 0].double().sum(0)
            sums[layer] = sums[layer] + total if layer in sums else total
    return {layer: (total / count).float() for layer, total in sums.items()}


@torch.inference_mode()
def ablate(
    model: Any,
    traces: Sequence[ForcedTrace],
    means: Means,
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
    before: int = 0,
) -> Tensor:
    """Margins of every decision with sets of heads ablated where it is taken, or before.

    Args:
        masks: heads of each condition [C, L, H].
        branches_per_pass: positions that are run together.
        before: tokens between the position at which heads are ablated, and no other, and the
            decision's; the run goes on from there over the trace's tokens.

    Returns:
        [E, 1 + C]: E decisions in the order of the traces, the plain run before the conditions.
    """
    masks = torch.cat([masks.new_zeros(1, *masks.shape[1:]), masks]).to(model.device)
    groups = torch.split(masks, max(1, min(SIDE_BY_SIDE, branches_per_pass) // (1 + before)))
    size = max(1, branches_per_pass // (len(groups[0]) * (1 + before)))
    donor = {layer: mean[None, :, None] for layer, mean in means.items()}
    parts = []
    for forced in plain_runs(model, traces, pad_id, before):
        margins = torch.empty(len(forced.place), len(masks))
        for start in range(0, len(forced.at), size):
            here = (forced.place >= start) & (forced.place < start + size)
            margins[here.cpu()] = torch.cat(
                [forced.patched(model, donor, group, start, size, here) for group in groups], dim=1
            ).cpu()
        parts.append(margins)
    return torch.cat(parts)


def attribute(model: Any, traces: Sequence[ForcedTrace], means: Means, *, pad_id: int) -> Tensor:
    """First-order estimate of how far ablating each head alone moves the margin.

    gradient of the margin with respect to the head's mixed value, all later paths included, times
    (mean - mixed).

    Returns:
        [E, L, H], decisions in the order of the traces.
    """
    passes = plain_runs(model, traces, pad_id)
    return torch.cat([_attributed(model, forced, means).cpu() for forced in passes])


@dataclass(frozen=True)
class PlainRuns:
    """Plain runs, a row a position (P in all), and the decisions (E) to read there."""

    trunk: Trunk
    mixed: dict[int, Tensor]
    """Layer -> the heads' mixed values [P, H, 1, D]."""
    at: Tensor
    """Positions on the padded axis [P]."""
    place: Tensor
    """Row of each decision [E], increasing within a trace's own."""
    targets: Tensor
    """[E]."""
    foils: Tensor
    """[E, most foils], -1 = unused."""
    before: int
    """Tokens between the positions and the decisions that are read."""

    def patched(
        self,
        model: Any,
        donor: Mapping[int, Tensor],
        masks: Tensor,
        start: int,
        size: int,
        here: Tensor,
    ) -> Tensor:
        """Margins [decisions that are `here`, C] at some positions, a branch a condition.

        Args:
            donor: layer -> mixed values that take the place of the positions' own [1 or N, H, 1,
                D], N the positions from `start` on, `size` at most.
            masks: heads of each condition [C, L, H].
        """
        part = slice(start, start + size)
        at = self.at[part, None].expand(-1, len(masks))
        given = {i: values.to(self.mixed[i].dtype) for i, values in donor.items()}
        where = masks.expand(len(at), -1, -1, -1)
        logits = run_branches(
            model,
            self.trunk.rows(part),
            at,
            (Intervention("output", where, given),),
            steps=1 + self.before,
        ).logits
        return _margins(logits, self.place[here] - start, self.targets[here], self.foils[here])


def _margins(logits: Tensor, place: Tensor, targets: Tensor, foils: Tensor) -> Tensor:
    """Margins [E, C] of decisions at rows `place` of logits [P, C, V], none of which is copied."""
    tokens = torch.cat([targets[:, None], foils.clamp(min=0)], dim=1)
    picked = logits[place[:, None], :, tokens].transpose(1, 2).float()
    order = torch.arange(1, tokens.shape[1], device=foils.device)
    rivals = torch.where(foils >= 0, order, -1)
    return decision_margin(picked, torch.zeros_like(targets)[:, None], rivals[:, None])


def plain_runs(
    model: Any, traces: Sequence[ForcedTrace], pad_id: int, before: int = 0
) -> Iterator[PlainRuns]:
    """Plain runs up to the last decisions; the rows are positions `before` tokens earlier."""
    for start in range(0, len(traces), TRACES_PER_PASS):
        chosen = traces[start : start + TRACES_PER_PASS]
        queries = [sorted({decision.query for decision in trace.decisions}) for trace in chosen]
        tokens = [trace.tokens[: own[-1] + 1] for trace, own in zip(chosen, queries, strict=True)]
        batch = left_pad(tokens, pad_id, model.device)
        positions = batch.positions([[query - before for query in own] for own in queries])
        tap = Tap(positions)
        trunk = grow_trunk(model, batch.ids, batch.mask, tap)
        row, slot = (positions >= 0).nonzero(as_tuple=True)
        rows = iter(range(len(row)))
        place = [{query: next(rows) for query in own} for own in queries]
        decisions = [decision for trace in chosen for decision in trace.decisions]
        yield PlainRuns(
            trunk.rows(row),
            {layer: r.mixed[row, :, slot][:, :, None] for layer, r in tap.record.items()},
            positions[row, slot],
            torch.tensor(
                [own[d.query] for trace, own in zip(chosen, place) for d in trace.decisions],
                device=model.device,
            ),
            torch.tensor([decision.target for decision in decisions], device=model.device),
            pad_right([decision.foils for decision in decisions], -1, model.device),
            before,
        )


def _attributed(model: Any, forced: PlainRuns, means: Means) -> Tensor:
    """[E, L, H]. Each decision is a branch in a row of its own, so no margin sees another's."""
    family = family_of(model)
    inputs: list[Tensor] = []

    def keep(module: Any, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        mixed = given[0] if given[0].requires_grad else given[0].detach().requires_grad_()
        inputs.append(mixed)
        return (mixed, *given[1:])

    layers = sorted(forced.mixed)
    hooks = [
        family.output_projection(model, layer).register_forward_pre_hook(keep) for layer in layers
    ]
    try:
        with torch.enable_grad():
            at = forced.at[forced.place, None]
            logits = run_branches(model, forced.trunk.rows(forced.place), at).logits
            own = torch.arange(len(at), device=at.device)
            margins = _margins(logits, own, forced.targets, forced.foils)
            gradients = torch.autograd.grad(margins.sum(), inputs)
    finally:
        for hook in hooks:
            hook.remove()
    effects = []
    for layer, gradient in zip(layers, gradients, strict=True):
        mixed = forced.mixed[layer][forced.place, :, 0]
        by_head = gradient[:, 0].reshape(mixed.shape)
        effects.append((by_head * (means[layer] - mixed)).sum(-1))
    return torch.stack(effects, dim=1)

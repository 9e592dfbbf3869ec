"""Outputs of heads at one note's decision, put in place at another note's.

At the recipient's query position, and nowhere else, the mixed values of a set of heads (what enters
the output projection) are replaced by those of a donor at its own decision, and the model runs on:
nothing is linearised. Values are taken as they are, whatever the two positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mechdistill.patching.ablation import ForcedTrace, plain_runs
from mechdistill.patching.decision_sweep import SIDE_BY_SIDE

Outputs = Mapping[int, Tensor]
"""Layer -> mixed value of each head at one position [H, D]."""


@dataclass(frozen=True)
class Recipient:
    """A trace whose decisions all lie at one position, and what is put in place there, in turn.

    Args:
        donors: one at least.
    """

    trace: ForcedTrace
    donors: Sequence[Outputs]


@torch.inference_mode()
def outputs_at(model: Any, traces: Sequence[ForcedTrace], *, pad_id: int) -> list[Outputs]:
    """What the heads put out at each trace's decision; its decisions lie at one position."""
    found: list[Outputs] = []
    for runs in plain_runs(model, traces, pad_id):
        found += [
            {layer: mixed[row, :, 0].clone() for layer, mixed in runs.mixed.items()}
            for row in range(len(runs.at))
        ]
    return found


@torch.inference_mode()
def knock_in(
    model: Any,
    recipients: Sequence[Recipient],
    masks: Tensor,
    *,
    pad_id: int,
    branches_per_pass: int,
) -> list[Tensor]:
    """Margins of the recipients' decisions with sets of a donor's heads in place.

    Args:
        masks: heads of each condition [C, L, H].
        branches_per_pass: positions that are run together.

    Returns:
        For each recipient [donors, decisions, 1 + C], the plain run before the conditions.
    """
    masks = torch.cat([masks.new_zeros(1, *masks.shape[1:]), masks]).to(model.device)
    groups = torch.split(masks, min(SIDE_BY_SIDE, branches_per_pass))
    size = max(1, branches_per_pass // len(groups[0]))
    found: list[Tensor] = []
    for runs in plain_runs(model, [recipient.trace for recipient in recipients], pad_id):
        chosen = recipients[len(found) : len(found) + len(runs.at)]
        margins = [
            torch.empty(len(own.donors), len(own.trace.decisions), len(masks)) for own in chosen
        ]
        for start in range(0, len(chosen), size):
            part = chosen[start : start + size]
            here = (runs.place >= start) & (runs.place < start + size)
            counts = [len(own.trace.decisions) for own in part]
            for turn in range(max(len(own.donors) for own in part)):
                donor = _side_by_side([own.donors[min(turn, len(own.donors) - 1)] for own in part])
                values = torch.cat(
                    [runs.patched(model, donor, group, start, size, here) for group in groups],
                    dim=1,
                ).cpu()
                for i, of_trace in enumerate(torch.split(values, counts)):
                    if turn < len(part[i].donors):
                        margins[start + i][turn] = of_trace
        found += margins
    return found


def _side_by_side(donors: Sequence[Outputs]) -> dict[int, Tensor]:
    """Layer -> [N, H, 1, D]."""
    return {layer: torch.stack([own[layer] for own in donors])[:, :, None] for layer in donors[0]}

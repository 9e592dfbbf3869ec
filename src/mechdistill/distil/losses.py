"""The six terms of Eqs. 5 and 6, each a mean over positions and then over examples.

The plain mean over all positions of a batch would let examples with long traces dominate.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mechdistill.distil.mechanisms import CoarseSignals, RefineSignals

FLOOR = 1e-8
"""Smallest attention weight that a logarithm sees."""


def coarse_terms(teacher: CoarseSignals, student: CoarseSignals, used: Tensor) -> dict[str, Tensor]:
    """The terms of L_P1 (Eq. 5); used is bool [B, E]."""
    return {
        "p1_attention": example_mean(rows_kl(teacher.rows, student.rows), used),
        "p1_write": example_mean((teacher.alignment - student.alignment).square(), used),
        "p1_interaction": example_mean((student.interaction - teacher.interaction).square(), used),
    }


def refine_terms(teacher: RefineSignals, student: RefineSignals, used: Tensor) -> dict[str, Tensor]:
    """The terms of L_P2 (Eq. 6); used is bool [B, R]."""
    return {
        "p2_loop": example_mean((teacher.loop - student.loop).square(), used),
        "p2_write": example_mean((teacher.help - student.help).square(), used),
        "p2_interaction": example_mean((teacher.interaction - student.interaction).square(), used),
    }


COARSE_TERMS = ("p1_attention", "p1_write", "p1_interaction")
REFINE_TERMS = ("p2_loop", "p2_write", "p2_interaction")


def rows_kl(teacher: Tensor, student: Tensor) -> Tensor:
    """KL(abar^T_q || abar^S_q) over the last axis; keys outside both rows add nothing.

    teacher [..., T], student [..., T], each adding to one over the same keys -> [...], in nats.
    """
    wide = torch.promote_types(student.dtype, torch.float32)  # the floor is 0 in half precision
    p, q = teacher.to(wide), student.to(wide)
    ratio = p.clamp(min=FLOOR).log() - q.clamp(min=FLOOR).log()
    return (p * ratio).sum(-1)


def example_mean(values: Tensor, used: Tensor) -> Tensor:
    """Mean over examples of the mean over an example's used positions.

    values [B, Q], used bool [B, Q] -> scalar; examples without a used position are left out, and
    a batch without any gives 0.
    """
    used_values = torch.where(used, values, 0.0)
    count = used.sum(-1)
    per_example = used_values.sum(-1) / count.clamp(min=1)
    return per_example.sum() / (count > 0).sum().clamp(min=1)

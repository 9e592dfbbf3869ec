"""Which methods are compared with which, and which baseline is the best one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mechdistill.significance.compare import Pair

PROPOSED = "mech"
SUCCESSOR = "mistill"
"""Proposed in version 2: no baseline of the first version's method, but compared with it."""
ABLATIONS = (
    *("p1_only", "p2_only", "random_pool"),
    *("mech_without_p1_attention", "mech_without_p1_write", "mech_without_p1_interaction"),
    *("mech_without_p2_loop", "mech_without_p2_write", "mech_without_p2_interaction"),
)
"""The proposed method less one phase, the choice of its heads or one term: compared with it and
with plain distillation."""
PLAIN = "vanilla"
PAPER_BASELINES = (PLAIN, "unicott", "morsd", "semcot", "cwt")
"""The baselines of the paper's Table 1: its average gain is over these alone."""
TEACHER = "teacher"


def pairs(methods: Sequence[str]) -> list[Pair]:
    """All comparisons among the study's methods.

    Roles: "baseline" (the proposed method against each true baseline), "ablation" (against itself
    less a part, and that against plain distillation), "successor" (version 2's method against plain
    distillation and the first version's), "teacher" (every method against it).
    """
    found = []
    if PROPOSED in methods:
        found += [Pair(PROPOSED, method, "baseline") for method in baselines(methods)]
        found += [Pair(PROPOSED, method, "ablation") for method in ABLATIONS if method in methods]
    if PLAIN in methods:
        found += [Pair(method, PLAIN, "ablation") for method in ABLATIONS if method in methods]
    if SUCCESSOR in methods:
        found += [Pair(SUCCESSOR, m, "successor") for m in (PLAIN, PROPOSED) if m in methods]
    return found + [Pair(method, TEACHER, "teacher") for method in methods]


def baselines(methods: Sequence[str]) -> list[str]:
    """Methods that have no part of a proposed one."""
    return [m for m in methods if m not in (PROPOSED, SUCCESSOR, *ABLATIONS)]


def best_baseline(validation: Mapping[str, float], methods: Collection[str]) -> str:
    """The baseline with the highest validation score; of equals the first in the study's order.

    "" if the study has no baseline.
    It is chosen on the validation split: choosing on the test split would favour the choice.
    """
    return max(methods, key=lambda method: validation[method], default="")

"""Mechanistic distillation: L_CoT + lambda_P1 L_P1 + lambda_P2 L_P2 (Eqs. 5, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mechdistill.distil.mechanistic import MechanisticMethod


class Mech(MechanisticMethod):
    """Both phases."""

    name = "mech"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(
            settings, {1: settings["distil.lambda_p1"], 2: settings["distil.lambda_p2"]}
        )

"""Mechanistic distillation: L_CoT + lambda_P1 L_P1 + lambda_P2 L_P2 (Eqs. 5, 6)."""

from mechdistill.distil.mechanistic import MechanisticMethod


class Mech(MechanisticMethod):
    """Both phases."""

    name = "mech"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")
    settings_tried = (
        {},
        {"distil.lambda_p1": 0.1, "distil.lambda_p2": 0.1},
        {"distil.lambda_p1": 1.0, "distil.lambda_p2": 1.0},
        {"distil.lambda_kl": 0.5},
    )

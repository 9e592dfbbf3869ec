"""Ablation: phase 1 alone beside L_CoT; its weight stays that of `mech`."""

from mechdistill.distil.mechanistic import MechanisticMethod


class P1Only(MechanisticMethod):
    """L_CoT + lambda_P1 L_P1."""

    name = "p1_only"
    parameters = ("distil.lambda_kl", "distil.lambda_p1")
    tuned_as = "mech"
    phases = (1,)

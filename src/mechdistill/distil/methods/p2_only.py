"""Ablation: phase 2 alone beside L_CoT; its weight stays that of `mech`."""

from mechdistill.distil.mechanistic import MechanisticMethod


class P2Only(MechanisticMethod):
    """L_CoT + lambda_P2 L_P2."""

    name = "p2_only"
    parameters = ("distil.lambda_kl", "distil.lambda_p2")
    tuned_as = "mech"
    phases = (2,)

"""Ablation (Figure 9, C40): `mech` without the loop-back R; all weights stay."""

from mechdistill.distil.mechanistic import MechanisticMethod


class MechWithoutP2Loop(MechanisticMethod):
    """Both phases less one term."""

    name = "mech_without_p2_loop"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")
    tuned_as = "mech"
    without = "p2_loop"

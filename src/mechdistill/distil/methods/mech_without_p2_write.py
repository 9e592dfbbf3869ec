"""Ablation (Figure 9, C40): `mech` without the helpfulness H; all weights stay."""

from mechdistill.distil.mechanistic import MechanisticMethod


class MechWithoutP2Write(MechanisticMethod):
    """Both phases less one term."""

    name = "mech_without_p2_write"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")
    tuned_as = "mech"
    without = "p2_write"

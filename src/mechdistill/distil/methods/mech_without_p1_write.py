"""Ablation (Figure 9, C39): `mech` without the anchor alignment A; all weights stay."""

from mechdistill.distil.mechanistic import MechanisticMethod


class MechWithoutP1Write(MechanisticMethod):
    """Both phases less one term."""

    name = "mech_without_p1_write"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")
    tuned_as = "mech"
    without = "p1_write"

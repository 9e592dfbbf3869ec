"""Ablation (Figure 9, C39): `mech` without the product PCS; all weights stay."""

from mechdistill.distil.mechanistic import MechanisticMethod


class MechWithoutP1Interaction(MechanisticMethod):
    """Both phases less one term."""

    name = "mech_without_p1_interaction"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")
    tuned_as = "mech"
    without = "p1_interaction"

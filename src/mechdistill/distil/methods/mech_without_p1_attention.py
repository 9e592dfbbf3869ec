"""Ablation (Figure 9, C39): `mech` without the divergence of the pooled rows; all weights stay."""

from mechdistill.distil.mechanistic import MechanisticMethod


class MechWithoutP1Attention(MechanisticMethod):
    """Both phases less one term."""

    name = "mech_without_p1_attention"
    parameters = ("distil.lambda_kl", "distil.lambda_p1", "distil.lambda_p2")
    tuned_as = "mech"
    without = "p1_attention"

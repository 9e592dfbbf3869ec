"""Vanilla chain-of-thought distillation: L_CoT alone."""

from mechdistill.distil.method import Method


class Vanilla(Method):
    """Token supervision and distribution matching on the teacher's traces."""

    name = "vanilla"
    parameters = ("distil.lambda_kl",)
    settings_tried = (
        {},
        {"distil.lambda_kl": 0.5},
        {"distil.lambda_kl": 0.1},
        {"distil.lambda_kl": 0.0},
    )

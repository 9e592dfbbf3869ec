"""How fast a device is: one core of a processor, or a graphics card."""

from __future__ import annotations

from dataclasses import dataclass

from mechdistill.planning.sizes import Model


@dataclass(frozen=True)
class Device:
    """Rates of a device.

    Attributes:
        flops: floating-point operations a second in training a model of 100,000 parameters.
        growth: power of the number of parameters with which that rate grows.
        most_flops: where it stops growing.
        forward, generation: share of that rate in plain passes, and in writing token by token.
        logit_seconds: a value of the output vocabulary in training, for memory traffic.
        memory: bytes of one device; of a processor it does not bound the number of devices.
        width: bytes of a stored number.
    """

    name: str
    flops: float
    growth: float
    most_flops: float
    forward: float
    generation: float
    logit_seconds: float
    memory: float
    width: int

    def training_rate(self, model: Model) -> float:
        """Floating-point operations a second in training the model."""
        grown: float = (model.multiplied / 1e5) ** self.growth
        return min(self.flops * grown, self.most_flops)


CPU = Device("one core", 12e9, 0.3, 1e11, 0.6, 0.25, 8e-9, float("inf"), 4)
"""Measured: records of the studies smoke, embedded and pretrained (docs/planning.md)."""
GPU = Device("one GPU of 80 GB", 1e11, 0.6, 3.5e14, 0.7, 0.05, 0.0, 72e9, 2)
"""Not measured: a published peak of 989 TFLOP/s in bfloat16, of which training reaches 35 %."""
LARGE = 10**9
"""Parameters of a teacher from which on a plan is for graphics cards, unless it is said."""

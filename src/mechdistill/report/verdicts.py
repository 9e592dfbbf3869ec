"""From an effect and its interval to a verdict.

Signs and intervals decide; the size of a number printed elsewhere never enters. A claim with
several parts stands only if each part stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

# (z_.975 + z_.8) / z_.975: half an interval times this is the difference that a two-sided test at
# 5 % would find in 80 of 100 repetitions
_DETECTABLE_PER_HALF_WIDTH = (1.959964 + 0.841621) / 1.959964


class Verdict(StrEnum):
    """What this study says about a claim."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    NO_DIFFERENCE = "no difference"
    UNDECIDED = "undecided"
    NOT_TESTED = "not tested in this study"


MANY = {
    Verdict.HOLDS: "hold",
    Verdict.DOES_NOT_HOLD: "do not hold",
    Verdict.NO_DIFFERENCE: "show no difference",
    Verdict.UNDECIDED: "are undecided",
    Verdict.NOT_TESTED: "were not tested",
}
"""What several claims do that got a verdict, as in `3 do not hold`."""


@dataclass(frozen=True)
class Estimate:
    """An effect with its 95 % interval from `n` independent units (notes, unless said)."""

    effect: float
    low: float
    high: float
    n: int
    unit: str

    @property
    def detectable(self) -> float:
        """The smallest difference that this many units would show (5 % two-sided, power 80 %)."""
        return (self.high - self.low) / 2 * _DETECTABLE_PER_HALF_WIDTH

    def __neg__(self) -> Estimate:
        """The same difference taken the other way round."""
        return Estimate(-self.effect, -self.high, -self.low, self.n, self.unit)

    def known(self) -> bool:
        """Whether there is an interval to judge by."""
        return self.n >= 2 and all(map(math.isfinite, (self.effect, self.low, self.high)))


@dataclass(frozen=True)
class Part:
    """One testable piece of a claim.

    `sign` is the claimed sign of the effect, +1 or -1. With `absent` the claim is that *no* effect
    of that sign exists ("P1-only does not lower Confusion": sign -1, absent); effects of up to
    `negligible` are then no effect.
    """

    name: str
    estimate: Estimate
    sign: int
    absent: bool = False
    negligible: float = 0.0

    @property
    def verdict(self) -> Verdict:
        if self.absent:
            return judge_absence(self.estimate, self.sign, self.negligible)
        return judge(self.estimate, self.sign)


def judge(estimate: Estimate, sign: int) -> Verdict:
    """`holds` if the interval lies on the claimed side of 0, `does not hold` if on the other."""
    low, high = _towards(estimate, sign)
    if not estimate.known():
        return Verdict.UNDECIDED
    if low > 0:
        return Verdict.HOLDS
    if high < 0:
        return Verdict.DOES_NOT_HOLD
    return Verdict.NO_DIFFERENCE


def judge_absence(estimate: Estimate, sign: int, negligible: float = 0.0) -> Verdict:
    """`does not hold` if an effect of that sign, larger than `negligible`, is shown.

    Else nothing speaks against the absence; the detectable difference says how much that means.
    """
    if not estimate.known():
        return Verdict.UNDECIDED
    low, _ = _towards(estimate, sign)
    shown = low > 0 and sign * estimate.effect > negligible
    return Verdict.DOES_NOT_HOLD if shown else Verdict.HOLDS


def conjunction(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on "all of these": one failure refutes, one unknown leaves open.

    A part without a visible difference makes the whole `no difference`: the claim asks for one.
    """
    if not verdicts:
        return Verdict.NOT_TESTED
    if Verdict.DOES_NOT_HOLD in verdicts:
        return Verdict.DOES_NOT_HOLD
    if all(v is Verdict.HOLDS for v in verdicts):
        return Verdict.HOLDS
    if all(v is Verdict.NOT_TESTED for v in verdicts):
        return Verdict.NOT_TESTED
    if Verdict.UNDECIDED in verdicts or Verdict.NOT_TESTED in verdicts:
        return Verdict.UNDECIDED
    return Verdict.NO_DIFFERENCE


def deciding_part(parts: Sequence[Part]) -> Part:
    """The first part whose own verdict is that of the whole: the one a reader should look at."""
    whole = conjunction([part.verdict for part in parts])
    return next((part for part in parts if part.verdict is whole), parts[0])


def _towards(estimate: Estimate, sign: int) -> tuple[float, float]:
    if sign not in (1, -1):
        raise ValueError(f"the claimed sign is +1 or -1, not {sign}")
    ends = sorted((sign * estimate.low, sign * estimate.high))
    return ends[0], ends[1]

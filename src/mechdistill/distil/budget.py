"""What a training costs: steps, tokens, time and memory.

Methods are compared at equal budgets, so each run says what it really used, interrupted runs
included.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Spent:
    """Amounts that add up over steps; the peak is the largest one."""

    steps: int = 0
    """Optimiser steps."""
    sequences: int = 0
    """Training sequences seen, repetitions counted."""
    target_tokens: int = 0
    """Tokens with a loss."""
    forward_tokens: int = 0
    """Tokens that went through the student, without padding."""
    wall_seconds: float = 0.0
    """Of all runs, up to the last checkpoint of each that was interrupted."""
    peak_memory_mib: float = 0.0
    """Resident memory of the process, at most."""

    @classmethod
    def of(cls, content: Mapping[str, Any] | None) -> Spent:
        """From what `content` gave, or nothing."""
        return cls(**(content or {}))

    def content(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.steps + other.steps,
            self.sequences + other.sequences,
            self.target_tokens + other.target_tokens,
            self.forward_tokens + other.forward_tokens,
            self.wall_seconds + other.wall_seconds,
            max(self.peak_memory_mib, other.peak_memory_mib),
        )


class Stopwatch:
    """Time since it was made or last asked."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def lap(self) -> Spent:
        """Time since the last lap, and the process's peak memory so far."""
        now = time.monotonic()
        seconds, self._since = now - self._since, now
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux
        return Spent(wall_seconds=seconds, peak_memory_mib=peak)

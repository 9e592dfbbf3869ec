"""Figures of patching name what the sweeps do."""

from __future__ import annotations

from mechdistill import patching_look
from mechdistill.patching import decision_sweep


def test_panels_are_of_the_sweeps_sites_and_directions() -> None:
    assert tuple(patching_look.SITES) == decision_sweep.SITES
    assert tuple(patching_look.STARTS) == decision_sweep.DIRECTIONS

"""Causal tests of attention heads: clean and corrupted runs exchange rows or outputs of heads.

For prompts of one's own, outside the workflow: `PromptPair`, `sweep_single_heads` and
`sweep_ranking`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mechdistill.patching.prompt_pairs import PromptPair as PromptPair
    from mechdistill.patching.prompt_sweep import PatchSweep as PatchSweep
    from mechdistill.patching.prompt_sweep import sweep_ranking as sweep_ranking
    from mechdistill.patching.prompt_sweep import sweep_single_heads as sweep_single_heads

# Loaded when first asked for: see mechdistill.heads
_HOMES = {
    "PatchSweep": "prompt_sweep",
    "PromptPair": "prompt_pairs",
    "sweep_ranking": "prompt_sweep",
    "sweep_single_heads": "prompt_sweep",
}
__all__ = ["PatchSweep", "PromptPair", "sweep_ranking", "sweep_single_heads"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Causal tests of attention heads: clean and corrupted runs exchange rows or outputs of heads.

For prompts of one's own, outside the workflow: `PromptPair`, `sweep_single_heads` and
`sweep_ranking`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechdistill.on_demand import on_demand

if TYPE_CHECKING:
    from mechdistill.patching.prompt_pairs import PromptPair as PromptPair
    from mechdistill.patching.prompt_sweep import PatchSweep as PatchSweep
    from mechdistill.patching.prompt_sweep import sweep_ranking as sweep_ranking
    from mechdistill.patching.prompt_sweep import sweep_single_heads as sweep_single_heads

__all__ = ["PatchSweep", "PromptPair", "sweep_ranking", "sweep_single_heads"]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        "PatchSweep": "prompt_sweep",
        "PromptPair": "prompt_pairs",
        "sweep_ranking": "prompt_sweep",
        "sweep_single_heads": "prompt_sweep",
    },
)

"""Which attention heads carry the two phases: scores, rankings, pools and how far to trust them.

For prompts of one's own, outside the workflow: `AnnotatedTrace`, `Contrast` and `score_prompts`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mechdistill.heads.annotated_trace import AnnotatedTrace as AnnotatedTrace
    from mechdistill.heads.annotated_trace import Contrast as Contrast
    from mechdistill.heads.prompt_scores import HeadScores as HeadScores
    from mechdistill.heads.prompt_scores import score_prompts as score_prompts

# Loaded when first asked for: the code of a rule is what its script imports, and a script that
# imports any module of this package imports this file too.
_HOMES = {
    "AnnotatedTrace": "annotated_trace",
    "Contrast": "annotated_trace",
    "HeadScores": "prompt_scores",
    "score_prompts": "prompt_scores",
}
__all__ = ["AnnotatedTrace", "Contrast", "HeadScores", "score_prompts"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

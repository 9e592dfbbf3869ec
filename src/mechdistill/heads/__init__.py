"""Which attention heads carry the two phases: scores, rankings, pools and how far to trust them.

For prompts of one's own, outside the workflow: `AnnotatedTrace`, `Contrast` and `score_prompts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechdistill.on_demand import on_demand

if TYPE_CHECKING:
    from mechdistill.heads.annotated_trace import AnnotatedTrace as AnnotatedTrace
    from mechdistill.heads.annotated_trace import Contrast as Contrast
    from mechdistill.heads.prompt_scores import HeadScores as HeadScores
    from mechdistill.heads.prompt_scores import score_prompts as score_prompts

__all__ = ["AnnotatedTrace", "Contrast", "HeadScores", "score_prompts"]
__getattr__, __dir__ = on_demand(
    __name__,
    {
        "AnnotatedTrace": "annotated_trace",
        "Contrast": "annotated_trace",
        "HeadScores": "prompt_scores",
        "score_prompts": "prompt_scores",
    },
)

"""Where the note itself stands in a prompt: without its candidate list and what is around."""

from __future__ import annotations

from typing import Any

from mechdistill.data.examples import Example
from mechdistill.data.frame import Frame
from mechdistill.data.prompts import CANDIDATES, REASONING
from mechdistill.data.token_spans import covering
from mechdistill.data.tokenizer import prompt_spans


def note_tokens(example: Example, tokenizer: Any, frame: Frame) -> tuple[int, ...]:
    """Positions of the note's tokens.

    Where the list stands first, the note counts from its first finding or cue on, and has no
    tokens if none is known: the end of a list is not marked.

    Args:
        frame: the one around the prompts.
    """
    begin, end = len(frame.before), len(example.prompt) - len(frame.behind)
    text = example.prompt[begin:end]
    if text.startswith(CANDIDATES):
        known = [start for start, _ in (*example.evidence, *example.cues)]
        begin, end = min(known, default=end), begin + text.rindex(REASONING)
    else:
        end = begin + text.rindex(CANDIDATES)
    _, spans = prompt_spans(tokenizer, example.prompt)
    return covering(spans, (begin, end))

"""What stands around the prompt of a note: nothing, a worked demonstration, a chat template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mechdistill.data.prompts import INSTRUCTION, demonstration
from mechdistill.data.tokenizer import is_word_level
from mechdistill.errors import InputError

Style = Literal["plain", "chat"]

_PLACE = "<<the note>>"
"""Stands for the note while the chat template is filled in."""


@dataclass(frozen=True)
class Frame:
    """The text before and behind the prompt of each note of a study."""

    before: str = ""
    behind: str = ""

    @classmethod
    def of(cls, tokenizer: Any, style: Style, demonstrations: int) -> Frame:
        """The frame of a tokenizer's model.

        Args:
            style: `plain` leaves the prompt as it is. `chat` makes it the user's turn of the
                tokenizer's chat template, its special tokens spelled out, behind an instruction
                that states the trace's form, and opens the assistant's turn.
            demonstrations: 1 puts one worked note before; its codes are in no label space.

        Raises:
            InputError: the tokenizer has no chat template, or one without a system's turn, or
                does not know the demonstration's words.
        """
        shown = [demonstration()] * demonstrations
        if shown and is_word_level(tokenizer):
            raise InputError(
                f"data.prompt.demonstrations is {demonstrations}, and a tokenizer of whole words "
                "does not know the words of the demonstration",
                "set data.prompt.demonstrations to 0",
            )
        if style == "plain":
            return cls("".join(f"{prompt} {reference}\n\n" for prompt, reference in shown))
        turns = [("system", INSTRUCTION)]
        for prompt, reference in shown:
            turns += [("user", prompt), ("assistant", reference)]
        return cls(*_around(tokenizer, [*turns, ("user", _PLACE)]))

    def __call__(self, prompt: str) -> str:
        """The text that the model reads for a prompt."""
        return f"{self.before}{prompt}{self.behind}"


def _around(tokenizer: Any, turns: list[tuple[str, str]]) -> tuple[str, str]:
    """The chat before and behind the place of the note."""
    try:
        text = tokenizer.apply_chat_template(
            [{"role": role, "content": content} for role, content in turns],
            tokenize=False,
            add_generation_prompt=True,
        )
        before, behind = str(text).split(_PLACE)
    except Exception as error:  # jinja's errors, a ValueError of transformers' or of the split
        raise InputError(
            f"data.prompt.style is chat, and the tokenizer's chat template cannot be filled in: "
            f"{error}",
            "set data.prompt.style to plain, or take a model whose tokenizer has a chat template "
            "with a system's turn",
        ) from error
    return before, behind

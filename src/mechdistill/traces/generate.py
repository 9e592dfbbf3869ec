"""Greedy traces of a model on examples, parsed, wherever the model is."""

from collections.abc import Callable, Sequence
from typing import Any

from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import encode_prompt
from mechdistill.models.generate import greedy
from mechdistill.traces.implicit import implicit_tokens
from mechdistill.traces.parse import Trace, parse_trace

Write = Callable[[Sequence[Example]], list[list[int]]]
"""Lets a model write: greedy token ids behind each example's prompt, the ending one included."""


def generate_traces(
    model: Any,
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerFast,
    space: LabelSpace,
    *,
    early_tokens: int,
    max_new_tokens: int,
    batch_size: int,
    what: str,
) -> list[Trace]:
    """Parsed greedy traces in the order of the examples; `what` is for progress lines.

    A model with implicit positions reads them behind the prompt; the traces do not hold them.
    """
    behind = implicit_tokens(model)

    def write(examples: Sequence[Example]) -> list[list[int]]:
        return greedy(
            model,
            [[*encode_prompt(tokenizer, example.prompt), *behind] for example in examples],
            max_new_tokens=max_new_tokens,
            eos_id=tokenizer.eos_token_id,
            pad_id=tokenizer.pad_token_id,
            batch_size=batch_size,
            what=what,
        )

    return written_traces(write, examples, tokenizer, space, early_tokens)


def written_traces(
    write: Write,
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerFast,
    space: LabelSpace,
    early_tokens: int,
) -> list[Trace]:
    """What is written on the examples, parsed, in their order."""
    return [
        parse_trace(example, ids, tokenizer, space, early_tokens)
        for example, ids in zip(examples, write(examples), strict=True)
    ]

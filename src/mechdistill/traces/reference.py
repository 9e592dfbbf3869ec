"""Reference traces, parsed as if a model had written them: any model can be forced to read them."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from mechdistill.data.examples import Example
from mechdistill.data.labels import LabelSpace
from mechdistill.data.tokenizer import encode_trace
from mechdistill.traces.parse import Trace, parse_trace


def reference_traces(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerFast,
    space: LabelSpace,
    early_tokens: int,
) -> list[Trace]:
    """The templated traces of the examples, in their order."""
    return [
        parse_trace(
            example,
            encode_trace(tokenizer, example.reference, example.prompt),
            tokenizer,
            space,
            early_tokens,
        )
        for example in examples
    ]

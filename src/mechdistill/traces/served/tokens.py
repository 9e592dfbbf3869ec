"""The tokens of a served answer: as the server gives them, else read back from its text.

Scores are read on tokens, so an answer counts only where it is certain which tokens it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechdistill.data.token_spans import decode, encode_continuation
from mechdistill.errors import InputError
from mechdistill.models.generate import until
from mechdistill.traces.served.server import Answer, Prompt

REMEDY = (
    "serve the study's own model with its own tokenizer (mechdistill export-teacher); where that "
    "is what is served, use a server that gives token ids (vLLM), or teacher.generation.backend: "
    "transformers"
)


def answer_tokens(answer: Answer, prompt: Prompt, tokenizer: Any, max_new_tokens: int) -> list[int]:
    """Token ids that the model wrote, up to and including the one that ends a text.

    Args:
        max_new_tokens: how many the server was allowed.

    Raises:
        InputError: the server read other tokens than the prompt's, or what it wrote is not what
            the tokenizer makes of it.
    """
    _check_prompt(answer, prompt)
    eos = tokenizer.eos_token_id
    if answer.ids is None:
        return _read_back(answer, prompt, tokenizer, max_new_tokens)
    ids = until(list(answer.ids[:max_new_tokens]), frozenset([eos]))
    if answer.ended and ids[-1:] != [eos] and len(ids) < max_new_tokens:
        ids = [*ids, eos]  # some leave out the token that stopped them
    spelled = decode(tokenizer, ids, skip_special_tokens=True)
    if _bare(spelled) != _bare(answer.text):
        raise InputError(
            f"note {prompt.name}: the server's text is not what the tokenizer makes of its "
            f"{len(answer.ids)} tokens",
            REMEDY,
        )
    return ids


def _check_prompt(answer: Answer, prompt: Prompt) -> None:
    """The server read exactly the prompt: no second first token, no other vocabulary."""
    if answer.read is not None and answer.read != prompt.ids:
        raise InputError(f"note {prompt.name}: the server read other tokens than were sent", REMEDY)
    if answer.read_count is not None and answer.read_count != len(prompt.ids):
        raise InputError(
            f"note {prompt.name}: the server reads its prompt as {answer.read_count} tokens, the "
            f"study's tokenizer as {len(prompt.ids)}",
            REMEDY,
        )


def _read_back(answer: Answer, prompt: Prompt, tokenizer: Any, limit: int) -> list[int]:
    """Tokens of the answer's text, where as many were written and they spell exactly that text.

    The token that ends a text is counted by the server and is in no text. Some decoders drop the
    space in front; it was there where the prompt did not end in one.
    """
    forms = [answer.text, f" {answer.text}"]
    if not prompt.text[-1:].isspace():
        forms.reverse()
    cuts = [list(encode_continuation(tokenizer, form)) for form in forms]
    same = [ids for ids in cuts if decode(tokenizer, ids, skip_special_tokens=True) == answer.text]
    whole = [*same[0], *[tokenizer.eos_token_id] * answer.ended] if same else []
    if len(whole) == answer.written_count and len(whole) <= limit:
        return whole
    raise InputError(
        f"note {prompt.name}: the server wrote {answer.written_count} tokens, and its text is no "
        "such number of tokens to the study's tokenizer",
        REMEDY,
    )


def _bare(text: str) -> str:
    """The text without white space and unfinished characters, in which decoders differ."""
    return "".join(text.split()).replace("\N{REPLACEMENT CHARACTER}", "")


def agreement(model: Any, prompt: Sequence[int], written: Sequence[int]) -> float:
    """Share of written tokens that `model` too finds likeliest, given all before them.

    One forward pass over prompt and answer.
    """
    import torch

    with torch.inference_mode():
        ids = torch.tensor([[*prompt, *written]])
        logits = model(ids, logits_to_keep=len(written) + 1).logits[0, :-1]
    return float((logits.argmax(-1) == torch.tensor(written)).float().mean())

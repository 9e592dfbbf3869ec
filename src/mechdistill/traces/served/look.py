"""A look at a teacher's server before anything runs."""

from __future__ import annotations

from pathlib import Path

import openai

from mechdistill.data.labels import read_label_space
from mechdistill.data.tokenizer import encode_prompt, load_tokenizer
from mechdistill.errors import InputError
from mechdistill.traces.served.server import Prompt, ServerSettings, TeacherServer, explain
from mechdistill.traces.served.tokens import answer_tokens

LABELS = 3
"""Whose names the server is asked to go on from."""


def look_at_server(
    settings: ServerSettings, tokenizer: Path, label_space: Path, max_new_tokens: int
) -> None:
    """See that a server answers, serves the model, has room, and reads the study's tokens.

    Args:
        tokenizer, label_space: of the study; where one of them is not made yet, tokens are not
            compared.
        max_new_tokens: that an answer may have.

    Raises:
        InputError: it does not.
    """
    server = TeacherServer(settings)
    room = server.describe()["max_model_len"]
    if room is not None and room <= max_new_tokens:
        raise InputError(
            f"the server at {settings.base_url} holds texts of {room} tokens, and the reasoning "
            f"alone may have {max_new_tokens}",
            "start it with more room (vLLM: --max-model-len), or lower traces.max_new_tokens",
        )
    if not (tokenizer.exists() and label_space.exists()):
        return
    own = load_tokenizer(tokenizer)
    text = " ".join(label.text for label in read_label_space(label_space).labels[:LABELS])
    prompt = Prompt("of label names", text, tuple(encode_prompt(own, text)))
    try:
        answer = server.write(prompt, max_new_tokens=1, eos_id=own.eos_token_id, seed=0)
    except openai.APIError as error:
        raise explain(error, prompt, settings) from error
    answer_tokens(answer, prompt, own, 1)

"""Ask a server for the answers to all prompts: several at a time, at a rate, each once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import openai

from mechdistill.errors import InputError
from mechdistill.progress import track
from mechdistill.traces.served.answers import AnswerFile
from mechdistill.traces.served.server import Prompt, TeacherServer, explain
from mechdistill.traces.served.tokens import agreement, answer_tokens

LEAST_AGREEMENT = 0.9
"""Of the first answer with the study's own model.

Rounding (a server computes in bfloat16) changes few tokens, other weights many.
"""


@dataclass(frozen=True)
class Decoding:
    """How far an answer goes, and the seed that is sent along: greedy answers need none."""

    max_new_tokens: int
    seed: int


def ask_server(
    server: TeacherServer,
    prompts: Sequence[Prompt],
    tokenizer: Any,
    answers: AnswerFile,
    decoding: Decoding,
    load_own_model: Callable[[], Any],
    what: str,
) -> list[list[int]]:
    """Token ids of the greedy answers, in the order of the prompts.

    The longest prompt goes first and alone: what is wrong with server, model or length shows
    before any other is asked.

    Args:
        answers: those that are there already; each new one is added when it arrives.
        load_own_model: gives the model that the server is said to hold.
        what: names the loop in the progress lines.

    Raises:
        InputError: the server cannot be used, does not hold the model, or stopped answering.
    """
    todo = {prompt.ids: prompt for prompt in prompts if answers.get(prompt.ids) is None}
    if todo:
        longest = max(todo.values(), key=lambda prompt: len(prompt.ids))
        facts = server.describe()
        own = load_own_model()
        _require_room(longest, decoding.max_new_tokens, facts["max_model_len"], own)
        first, fingerprint = _write(server, longest, tokenizer, decoding)
        share = _require_agreement(own, longest, first, facts)
        del own
        more = {"fingerprint": fingerprint, "takes_ids": server.takes_ids, "agreement": share}
        answers.note_server(facts | more)
        answers.add(longest.ids, first)
        rest = [prompt for prompt in todo.values() if prompt is not longest]
        done = len({prompt.ids for prompt in prompts}) - len(rest)
        _ask_many(server, rest, tokenizer, answers, decoding, what, done)
    written = [answers.get(prompt.ids) for prompt in prompts]
    return [ids for ids in written if ids is not None]


def _ask_many(
    server: TeacherServer,
    prompts: Sequence[Prompt],
    tokenizer: Any,
    answers: AnswerFile,
    decoding: Decoding,
    what: str,
    done: int,
) -> None:
    """Add the answers to all `prompts`; `done` others are there already."""
    pace = Pace(server.settings.requests_per_second)

    def one(prompt: Prompt) -> None:
        pace.wait()
        answers.add(prompt.ids, _write(server, prompt, tokenizer, decoding)[0])

    with ThreadPoolExecutor(server.settings.concurrency) as pool:
        asked = [pool.submit(one, prompt) for prompt in prompts]
        try:
            for future in track(as_completed(asked), what, done + len(asked), done=done):
                future.result()
        except BaseException:  # those on their way are awaited and kept, no other is sent
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _write(
    server: TeacherServer, prompt: Prompt, tokenizer: Any, decoding: Decoding
) -> tuple[list[int], str | None]:
    """The tokens of one answer, and the server's fingerprint of itself."""
    try:
        answer = server.write(
            prompt,
            max_new_tokens=decoding.max_new_tokens,
            eos_id=tokenizer.eos_token_id,
            seed=decoding.seed,
        )
    except openai.APIError as error:
        raise explain(error, prompt, server.settings) from error
    return answer_tokens(answer, prompt, tokenizer, decoding.max_new_tokens), answer.fingerprint


def _require_room(longest: Prompt, new: int, served: int | None, own: Any) -> None:
    """Prompt and answer fit into what the server reads at once, and into the model's positions."""
    rooms = {
        "the server reads": served,
        "the model has positions for": getattr(own.config, "max_position_embeddings", None),
    }
    for whose, room in rooms.items():
        if room is not None and len(longest.ids) + new > room:
            raise InputError(
                f"note {longest.name} has {len(longest.ids)} tokens and {new} are to be written "
                f"(traces.max_new_tokens), but {whose} {room}",
                "start the server with more room (vLLM: --max-model-len) or take a model that has "
                "it, or make notes shorter (data.source.most_words) or their candidate lists",
            )


def _require_agreement(
    own: Any, prompt: Prompt, written: Sequence[int], facts: dict[str, Any]
) -> float:
    share = agreement(own, prompt.ids, written)
    if share < LEAST_AGREEMENT:
        raise InputError(
            f"the server at {facts['base_url']} holds another model than the study's teacher: of "
            f"{len(written)} tokens that it wrote on note {prompt.name}, the teacher would write "
            f"{share:.0%}",
            "serve the study's own weights: mechdistill export-teacher (docs/teachers.md)",
        )
    return share


class Pace:
    """Lets threads go on so many times a second, evenly; None lets them go at once."""

    def __init__(self, per_second: float | None) -> None:
        self._pause = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait for one's turn."""
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + self._pause
        time.sleep(max(0.0, turn - time.monotonic()))

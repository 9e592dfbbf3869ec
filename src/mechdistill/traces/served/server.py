"""A server that speaks OpenAI's completions API (vLLM, `transformers serve`): found and asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import openai

from mechdistill.errors import InputError
from mechdistill.traces.served.address import is_local

KEY_VARIABLE = "MECHDISTILL_API_KEY"
"""Environment variable that holds the server's key, if it wants one; it is written nowhere."""
CONTACT_SECONDS = 30.0
"""At most, for the first contact: a server that lists its models does it at once."""
REFUSED = (400, 422)
"""What servers answer to a request whose form they do not take."""
SETTINGS = "teacher.generation.server"


@dataclass(frozen=True)
class ServerSettings:
    """How a server is asked; see `mechdistill.study.Server`."""

    base_url: str
    model: str
    concurrency: int
    requests_per_second: float | None
    timeout: float
    retries: int
    restricted_data_may_leave: bool

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ServerSettings:
        """From the section of the study."""
        return cls(**values)


@dataclass(frozen=True)
class Prompt:
    """What a model reads: the note's name, its text, and the ids that it is for the tokenizer."""

    name: str
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """What a server said: the text, and what it tells of tokens.

    `ids`: those written; `read`: those of the prompt; both None where a server gives none.
    """

    text: str
    ended: bool
    read_count: int | None
    written_count: int | None
    read: tuple[int, ...] | None
    ids: tuple[int, ...] | None
    fingerprint: str | None


class TeacherServer:
    """One model at one address. Threads may share it.

    Whatever goes to this machine itself passes no proxy and follows no redirection, so that it
    does not leave it after all.
    """

    def __init__(self, settings: ServerSettings) -> None:
        local = is_local(settings.base_url)
        self.settings = settings
        self._takes_ids = True
        self._client = openai.OpenAI(
            base_url=settings.base_url,
            api_key=os.environ.get(KEY_VARIABLE) or "none",  # the client insists on one
            timeout=settings.timeout,
            max_retries=settings.retries,
            http_client=openai.DefaultHttpxClient(trust_env=not local, follow_redirects=not local),
        )

    @property
    def takes_ids(self) -> bool:
        """Whether it takes token ids for a prompt, as far as is known: see `write`."""
        return self._takes_ids

    def describe(self) -> dict[str, Any]:
        """What the server says of itself and of the model; nulls where it says nothing.

        Raises:
            InputError: nothing answers, what answers is no such server, it refuses the key, or it
                does not serve the model.
        """
        model = self._listed()
        return {
            "base_url": self.settings.base_url,
            "model": model["id"],
            "root": model.get("root"),
            "owned_by": model.get("owned_by"),
            "max_model_len": model.get("max_model_len"),
            "version": self._version(),
        }

    def write(self, prompt: Prompt, *, max_new_tokens: int, eos_id: int, seed: int) -> Answer:
        """The greedy answer to a prompt.

        A server that refuses token ids is given the text from then on. A request that fails for
        a passing reason is repeated, at growing intervals, as often as the settings say.

        Raises:
            openai.APIError: it failed all the same.
        """
        options: dict[str, Any] = {
            "model": self.settings.model,
            "max_tokens": max_new_tokens,
            "seed": seed,
            # greedy, whatever generation_config.json the server took up
            **{"temperature": 0, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0},
        }
        if self._takes_ids:
            only_by_ids = {
                **{"return_token_ids": True, "repetition_penalty": 1.0, "min_p": 0.0},
                # ends where greedy decoding in this process does, and nowhere else
                **{"ignore_eos": True, "stop_token_ids": [eos_id]},
            }
            try:
                said = self._client.completions.create(
                    prompt=list(prompt.ids), extra_body=only_by_ids, **options
                )
                return _answer(said)
            except openai.APIStatusError as error:
                if error.status_code not in REFUSED:
                    raise
                refusal = error
        try:
            answer = _answer(self._client.completions.create(prompt=prompt.text, **options))
        except openai.APIStatusError as error:
            if self._takes_ids and error.status_code in REFUSED:
                raise refusal from error
            raise
        self._takes_ids = False
        return answer

    def _listed(self) -> dict[str, Any]:
        """The server's entry of the model."""
        url, name = self.settings.base_url, self.settings.model
        where = f"{SETTINGS}.base_url"
        try:
            contact = self._client.with_options(
                max_retries=0, timeout=min(CONTACT_SECONDS, self.settings.timeout)
            )
            page: Any = contact.models.list()
            listed: dict[str, dict[str, Any]] = {
                model.id: model.model_dump() for model in page.data
            }
        except openai.APIConnectionError as error:
            raise InputError(
                f"no server answers at {url}", f"start it (docs/teachers.md), or correct {where}"
            ) from error
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise InputError(
                f"the server at {url} refuses the key",
                f"put its key into the environment variable {KEY_VARIABLE}",
            ) from error
        except Exception as error:  # whatever comes of reading something else as a list of models
            raise InputError(
                f"what answers at {url} has no list of models ({_kind(error)})",
                f"correct {where}: the address of an OpenAI-compatible API, which ends in /v1",
            ) from error
        if name not in listed:
            raise InputError(
                f"the server at {url} does not serve {name}; it serves: "
                f"{', '.join(listed) or 'nothing'}",
                f"correct {SETTINGS}.model, or start the server with that model",
            )
        return listed[name]

    def _version(self) -> str | None:
        """vLLM tells its version beside the API; others have none to tell."""
        parts = urlsplit(self.settings.base_url)
        root = parts.path.rstrip("/").removesuffix("/v1")
        url = urlunsplit((parts.scheme, parts.netloc, f"{root}/version", "", ""))
        try:
            said: Any = self._client.with_options(max_retries=0).get(url, cast_to=object)
            return str(said["version"])
        except (openai.APIError, KeyError, TypeError):
            return None


def explain(error: openai.APIError, prompt: Prompt, settings: ServerSettings) -> InputError:
    """What a request that failed for good means. The server's own words go to the log alone.

    They may quote the prompt, and so restricted data, which the log of such a job never gets.
    """
    url = settings.base_url
    print(f"the server said: {error.message}", file=sys.stderr)
    if isinstance(error, openai.APIStatusError) and error.status_code < 500:
        if isinstance(error, openai.RateLimitError):
            return InputError(
                f"the server at {url} accepts no further requests (HTTP 429)",
                f"lower {SETTINGS}.requests_per_second or .concurrency and start the same command "
                "again; finished answers are kept",
            )
        return InputError(
            f"the server at {url} refuses note {prompt.name} of {len(prompt.ids)} tokens "
            f"(HTTP {error.status_code})",
            "see the log for what it says; if the note is too long for it, start it with more "
            "room (vLLM: --max-model-len)",
        )
    slow = isinstance(error, openai.APITimeoutError)
    return InputError(
        f"the server at {url} {'does not answer in time' if slow else 'stopped answering'} "
        f"({_kind(error)}, {settings.retries} retries)",
        "start it again, then the same command: finished answers are kept"
        + (f"; {SETTINGS}.timeout is {settings.timeout:g} s" if slow else ""),
    )


def _answer(said: Any) -> Answer:
    """The first choice of a completion; fields beyond OpenAI's are vLLM's."""
    choice, usage = said.choices[0], said.usage
    read, ids = getattr(choice, "prompt_token_ids", None), getattr(choice, "token_ids", None)
    return Answer(
        text=choice.text,
        ended=choice.finish_reason == "stop",
        read_count=usage.prompt_tokens if usage else None,
        written_count=usage.completion_tokens if usage else None,
        read=tuple(read) if read is not None else None,
        ids=tuple(ids) if ids is not None else None,
        fingerprint=said.system_fingerprint,
    )


def _kind(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    return f"HTTP {status}" if status else type(error).__name__

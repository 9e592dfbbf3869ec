"""Against `transformers serve`: the same greedy traces as in this process, also after a kill.

It takes prompts as text alone, which it says, and gives no token ids.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mechdistill.data.tokenizer import save_tokenizer
from mechdistill.errors import InputError
from mechdistill.models.loading import save_model
from mechdistill.models.servable import write_servable
from mechdistill.traces.served.answers import AnswerFile
from mechdistill.traces.served.ask import Decoding, ask_server
from mechdistill.traces.served.server import TeacherServer

from .conftest import NEW
from .servers import Proxy, settings, start_transformers


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model, tokenizer) -> Path:
    """The model as the study's teacher is given to a server."""
    here = tmp_path_factory.mktemp("served")
    weights, config, words = here / "model.safetensors", here / "config.json", here / "words.json"
    save_model(model, weights, config)
    save_tokenizer(words, tokenizer)
    write_servable(weights, config, words, here / "teacher")
    return here / "teacher"


Started = tuple[subprocess.Popen[bytes], int]


@pytest.fixture(scope="module")
def real(folder: Path) -> Iterator[Started]:
    process, port = start_transformers(folder, folder.with_name("serve.log"))
    yield process, port
    process.kill()
    process.wait()


@pytest.fixture
def ask(model, tokenizer, prompts, folder, tmp_path):
    def asking(url: str, new: int = NEW, **changes: object):
        answers = AnswerFile(tmp_path / "answers.jsonl", "run")
        server = TeacherServer(settings(url, **({"model": str(folder)} | changes)))
        decoding = Decoding(new, seed=0)
        return ask_server(
            server, prompts, tokenizer, answers, decoding, lambda: model, "teacher trace"
        ), answers

    return asking


def test_a_folder_in_use_is_not_overwritten(folder):
    with pytest.raises(InputError, match="is there already"):
        write_servable(Path("w"), Path("c"), Path("t"), folder)


def test_traces_are_those_of_this_process(real, ask, own, folder):
    proxy = Proxy(real[1])
    with proxy.running() as url:
        written, answers = ask(url)
    assert written == own
    assert proxy.answered == len(own) and proxy.asked == len(own) + 1  # ids were offered first
    (server,) = answers.servers
    assert server["model"] == str(folder) and server["version"] is None
    assert server["takes_ids"] is False and server["answers"] == len(own)


def test_a_wrong_model_and_too_long_a_prompt_cost_no_answer(real, ask, folder):
    proxy = Proxy(real[1])
    with proxy.running() as url:
        with pytest.raises(InputError, match=f"does not serve other; it serves: {folder}"):
            ask(url, model="other")
        with pytest.raises(InputError, match="positions for 512"):
            ask(url, new=500)
    assert proxy.asked == 0


def test_a_server_killed_midway_and_started_again(real, ask, own, folder, tmp_path):
    proxy = Proxy(real[1], fatal=5, victim=real[0])
    with proxy.running() as url:
        with pytest.raises(InputError, match="stopped answering") as error:
            ask(url)
        assert "finished answers are kept" in error.value.remedy
        kept = len(AnswerFile(tmp_path / "answers.jsonl", "run"))
        assert 5 <= kept < len(own)
        process, port = start_transformers(folder, tmp_path / "again.log")
        try:
            proxy.target, proxy.victim, proxy.answered = port, None, 0
            written, answers = ask(url)
        finally:
            process.kill()
            process.wait()
    assert written == own
    assert proxy.answered == len(own) - kept
    assert [server["answers"] for server in answers.servers] == [kept, len(own) - kept]

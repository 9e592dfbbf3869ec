"""Asking a server that takes and gives token ids: what comes back, and what goes wrong."""

from __future__ import annotations

import http.server
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mechdistill.errors import InputError
from mechdistill.traces.served.answers import AnswerFile
from mechdistill.traces.served.ask import Decoding, Pace, ask_server
from mechdistill.traces.served.server import KEY_VARIABLE, TeacherServer

from .conftest import NEW, greedy_ids, tiny
from .servers import Dialect, Handler, free_port, listening, settings


@pytest.fixture
def answers(tmp_path: Path) -> AnswerFile:
    return AnswerFile(tmp_path / "answers.jsonl", "run")


@pytest.fixture
def ask(model, tokenizer, prompts, answers):
    """Ask for everything at an address."""

    def asking(url: str, asked=prompts, new: int = NEW, **changes: object) -> list[list[int]]:
        return ask_server(
            TeacherServer(settings(url, **changes)),
            asked,
            tokenizer,
            answers,
            Decoding(new, seed=0),
            lambda: model,
            "teacher trace",
        )

    return asking


def test_answers_are_the_models_own_greedy_tokens_in_order(dialect, ask, own, prompts, answers):
    with dialect.running() as url:
        assert ask(url) == own
    assert len(dialect.asked) == len({prompt.ids for prompt in prompts})
    assert all(isinstance(body["prompt"], list) for body in dialect.asked)
    assert {body["temperature"] for body in dialect.asked} == {0}
    assert {body["max_tokens"] for body in dialect.asked} == {NEW}
    (server,) = answers.servers
    assert server["version"] == "0.99.1" and server["fingerprint"] == "vllm-0.99.1"
    assert server["root"] == "/models/teacher" and server["takes_ids"] is True
    assert server["agreement"] == 1.0 and server["answers"] == len(dialect.asked)


def test_the_longest_prompt_goes_first(dialect, ask, prompts):
    with dialect.running() as url:
        ask(url)
    assert len(dialect.asked[0]["prompt"]) == max(len(prompt.ids) for prompt in prompts)


def test_nothing_is_asked_twice(dialect, ask, own):
    with dialect.running() as url:
        assert ask(url) == own
        asked = len(dialect.asked)
        assert ask(url) == own
    assert len(dialect.asked) == asked
    assert ask("http://127.0.0.1:1/v1") == own  # all is there: no server is needed


def test_a_passing_fault_is_got_over(dialect, ask, own):
    dialect.faults = [503, 429]
    with dialect.running() as url:
        assert ask(url, retries=3) == own


def test_a_lasting_fault_keeps_what_is_finished(dialect, ask, own, answers):
    plain = dialect.write

    def write(ids: list[int], new: int) -> list[int]:
        if len(dialect.asked) > 5:
            dialect.faults = [503] * 99
        return plain(ids, new)

    dialect.write = write
    with dialect.running() as url:
        with pytest.raises(InputError, match=r"stopped answering \(HTTP 503, 0 retries\)") as error:
            ask(url, retries=0)
        assert "finished answers are kept" in error.value.remedy
        kept = len(answers)
        assert kept >= 5
        dialect.write, dialect.faults, dialect.asked = plain, [], []
        assert ask(url) == own
    assert len(dialect.asked) == 12 - kept


def test_so_many_requests_a_second(dialect, ask):
    with dialect.running() as url:
        begin = time.monotonic()
        ask(url, requests_per_second=20.0, concurrency=8)
        assert time.monotonic() - begin > 10 / 20  # the first one goes before


def test_turns_come_evenly():
    pace, turns = Pace(50.0), []

    def take() -> None:
        pace.wait()
        turns.append(time.monotonic())

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(turns) - min(turns) > 4.5 / 50


def test_so_many_at_a_time_and_no_more(dialect, ask):
    plain, lock, inside, most = dialect.write, threading.Lock(), [], []
    met = threading.Event()

    def write(ids: list[int], new: int) -> list[int]:
        with lock:
            inside.append(ids)
            most.append(len(inside))
        if len(inside) > 1:
            met.set()
        if len(dialect.asked) > 1:  # the first one goes alone
            assert met.wait(30)
        with lock:
            inside.remove(ids)
        return plain(ids, new)

    dialect.write = write
    with dialect.running() as url:
        ask(url, concurrency=2)
    assert max(most) == 2 and most[0] == 1


def test_no_server(ask):
    with pytest.raises(InputError, match=r"no server answers at http://127\.0\.0\.1:") as error:
        ask(f"http://127.0.0.1:{free_port()}/v1")
    assert "teacher.generation.server.base_url" in error.value.remedy


def test_an_address_that_is_no_such_api(dialect, ask):
    class Page(Handler):
        def do_GET(self) -> None:
            self.send(200, b"<html>hello</html>", "text/html")

    with listening(Page) as url, pytest.raises(InputError, match="has no list of models"):
        ask(f"{url}/v1")
    with (
        listening(http.server.SimpleHTTPRequestHandler) as url,
        pytest.raises(InputError, match=r"has no list of models \(HTTP 404\)") as error,
    ):
        ask(url)
    assert "ends in /v1" in error.value.remedy


def test_a_model_that_is_not_served(dialect, ask):
    with (
        dialect.running() as url,
        pytest.raises(InputError, match="does not serve other; it serves: teacher"),
    ):
        ask(url, model="other")
    assert dialect.asked == []


def test_a_prompt_without_room_on_the_server(dialect, ask, prompts):
    dialect.max_model_len = 60
    longest = max(prompts, key=lambda prompt: len(prompt.ids))
    said = rf"note {longest.name} has {len(longest.ids)} tokens and {NEW} are to be .*reads 60"
    with dialect.running() as url, pytest.raises(InputError, match=said) as error:
        ask(url)
    assert "--max-model-len" in error.value.remedy
    assert dialect.asked == []


def test_a_prompt_without_room_in_the_model(dialect, ask):
    with (
        dialect.running() as url,
        pytest.raises(InputError, match="the model has positions for 512"),
    ):
        ask(url, new=500)
    assert dialect.asked == []


def test_a_refused_prompt_is_named_and_not_quoted(dialect, ask, answers, prompts, capfd):
    dialect.faults = [400, 400]
    longest = max(prompts, key=lambda prompt: len(prompt.ids))
    with (
        dialect.running() as url,
        pytest.raises(InputError, match=rf"refuses note {longest.name} of .*HTTP 400"),
    ):
        ask(url)
    assert len(answers) == 0
    assert re.search(r"^the server said: .*refused: ", capfd.readouterr().err, re.MULTILINE)


def test_other_weights_are_found_out_before_the_second_note(dialect, ask, tokenizer, answers):
    other = tiny(tokenizer, seed=2)
    dialect.write = lambda ids, new: greedy_ids(other, tokenizer, [ids], new)[0]
    with (
        dialect.running() as url,
        pytest.raises(InputError, match="holds another model than the study's teacher"),
    ):
        ask(url)
    assert len(dialect.asked) == 1 and len(answers) == 0


def test_a_key_comes_from_the_environment_alone(dialect, ask, own, monkeypatch):
    dialect.key = "sesame"
    with dialect.running() as url:
        monkeypatch.delenv(KEY_VARIABLE, raising=False)
        monkeypatch.setenv("OPENAI_API_KEY", "sesame")  # meant for others
        with pytest.raises(InputError, match="refuses the key") as error:
            ask(url)
        assert KEY_VARIABLE in error.value.remedy
        monkeypatch.setenv(KEY_VARIABLE, "sesame")
        assert ask(url) == own


def test_what_stays_here_passes_no_proxy(dialect, ask, own, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with dialect.running() as url:
        assert ask(url) == own


def test_what_stays_here_is_not_led_away(dialect, ask):
    class Leading(Handler):
        def do_GET(self) -> None:
            self.send_response(307)
            self.send_header("location", f"{elsewhere}/models")
            self.send_header("content-length", "0")
            self.end_headers()

    with (
        dialect.running() as elsewhere,
        listening(Leading) as url,
        pytest.raises(InputError, match="has no list of models"),
    ):
        ask(f"{url}/v1")


def test_a_spoilt_answer_is_refused(dialect: Dialect, ask, prompts):
    def spoil(answer: dict) -> None:
        choice = answer["choices"][0]
        choice["prompt_token_ids"] = [1, *choice["prompt_token_ids"]]

    dialect.spoil = spoil
    one = [replace(prompts[0], name="n7")]
    with (
        dialect.running() as url,
        pytest.raises(InputError, match="note n7: the server read other tokens"),
    ):
        ask(url, one)

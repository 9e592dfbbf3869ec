"""A server that does not fit a study is a fault that doctor finds before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdistill.data.labels import write_label_space
from mechdistill.data.tokenizer import save_tokenizer
from mechdistill.doctor import Fault, unfit_servers
from mechdistill.study import load_study

from .servers import Dialect, free_port

ROOT = Path(__file__).parents[3]


def faults(root: Path, url: str, model: str = "teacher") -> list[Fault]:
    server = {
        **{"base_url": url, "model": model, "concurrency": 1, "requests_per_second": None},
        **{"timeout": 10.0, "retries": 0, "restricted_data_may_leave": False},
    }
    generation = {"backend": "server", "server": server}
    return list(
        unfit_servers(
            root, [load_study({"study": "smoke", "teacher": {"generation": generation}}, ROOT)]
        )
    )


@pytest.fixture
def begun(tmp_path, tokenizer, space) -> Path:
    """A study that has its tokenizer."""
    data = tmp_path / "results" / "smoke" / "data"
    data.mkdir(parents=True)
    save_tokenizer(data / "tokenizer.json", tokenizer)
    write_label_space(data / "label_space.json", space)
    return tmp_path


@pytest.fixture
def speaking(dialect: Dialect, tokenizer) -> Dialect:
    dialect.write = lambda ids, new: [tokenizer.eos_token_id]
    return dialect


def test_without_a_server_none_is_looked_at(tmp_path):
    assert not list(unfit_servers(tmp_path, [load_study({"study": "smoke"}, ROOT)]))


def test_a_server_of_the_study_is_no_fault_before_and_after_its_tokenizer_is_made(
    begun, tmp_path, speaking
):
    with speaking.running() as url:
        assert not faults(tmp_path / "empty", url)
        assert not speaking.asked
        assert not faults(begun, url)
    (body,) = speaking.asked
    assert body["max_tokens"] == 1


def test_one_that_is_not_there_or_serves_another_model_is_named(tmp_path, speaking):
    (absent,) = faults(tmp_path, f"http://127.0.0.1:{free_port()}/v1")
    assert absent.what.startswith("smoke: no server answers at http://127.0.0.1:")
    with speaking.running() as url:
        (other,) = faults(tmp_path, url, model="larger")
    assert "does not serve larger; it serves: teacher" in other.what
    assert "teacher.generation.server.model" in other.remedy


def test_too_little_room_is_named(tmp_path, speaking):
    speaking.max_model_len = 72
    with speaking.running() as url:
        (fault,) = faults(tmp_path, url)
    assert "holds texts of 72 tokens" in fault.what
    assert "--max-model-len" in fault.remedy


def test_another_tokenizer_is_named(begun, speaking):
    def spoil(answer: dict) -> None:
        answer["usage"]["prompt_tokens"] += 1
        del answer["choices"][0]["prompt_token_ids"]

    speaking.spoil = spoil
    with speaking.running() as url:
        (fault,) = faults(begun, url)
    assert "reads its prompt as" in fault.what
    assert "export-teacher" in fault.remedy


def test_a_refused_request_is_named(begun, speaking):
    speaking.faults = [500]
    with speaking.running() as url:
        (fault,) = faults(begun, url)
    assert "stopped answering" in fault.what

"""The job as the workflow runs it: its record names the server, its traces are the model's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mechdistill import artifacts
from mechdistill.data.examples import write_examples
from mechdistill.data.labels import write_label_space
from mechdistill.data.tokenizer import save_tokenizer
from mechdistill.models.loading import save_model
from mechdistill.provenance.fingerprint import SourceTree
from mechdistill.provenance.run import harmless
from mechdistill.traces.generate import generate_traces
from mechdistill.traces.served.server import KEY_VARIABLE
from mechdistill.traces.store import read_traces

from .conftest import NEW
from .servers import settings

REPOSITORY = Path(__file__).parents[3]
SCRIPT = "workflow/scripts/ask_teacher_server.py"
KEY = "open-sesame-open"


@pytest.fixture
def job(tmp_path, monkeypatch, model, tokenizer, space, examples) -> Any:
    """Run the job with a server at a URL, on restricted data."""
    for name in ("src", "workflow/scripts"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "src" / "mechdistill").symlink_to(REPOSITORY / "src" / "mechdistill")
    shutil.copy(REPOSITORY / SCRIPT, tmp_path / SCRIPT)
    monkeypatch.chdir(tmp_path)
    save_model(model, "model.safetensors", "config.json")
    save_tokenizer("tokenizer.json", tokenizer)
    write_label_space("labels.json", space)
    write_examples("examples.parquet", examples[:12])
    inputs = {
        **{"--model": "model.safetensors", "--config": "config.json"},
        **{"--label-space": "labels.json", "--tokenizer": "tokenizer.json"},
        "--examples": "examples.parquet",
    }

    def run(url: str) -> subprocess.CompletedProcess[str]:
        params = {
            "teacher.generation.server": settings(url, retries=0).__dict__,
            **{"teacher.seed": 0, "traces.early_tokens": 8, "traces.max_new_tokens": NEW},
        }
        command = [
            *(sys.executable, "-m", "mechdistill.provenance.run", "--params", json.dumps(params)),
            *("--code", SourceTree(Path()).fingerprint(SCRIPT).digest, "--restricted"),
            *("--inputs", *inputs.values(), "--outputs", "traces.parquet"),
            *("--log", "logs/tiny/ask_teacher_server.log", "--", SCRIPT),
            *(word for pair in inputs.items() for word in pair),
            *("--answers", "checkpoints/answers.jsonl", "--traces", "traces.parquet"),
        ]
        environment = os.environ | {"PYTHONPATH": "src", KEY_VARIABLE: KEY}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return run


def test_the_record_names_the_server_and_nothing_tells_its_key(
    job, dialect, model, tokenizer, space, examples
):
    dialect.key = KEY
    with dialect.running() as url:
        done = job(url)
    assert done.returncode == 0, done.stdout

    own = generate_traces(
        model,
        examples[:12],
        tokenizer,
        space,
        early_tokens=8,
        max_new_tokens=NEW,
        batch_size=16,
        what="oracle",
    )
    assert read_traces("traces.parquet") == own
    record = artifacts.read_json("provenance/runs/tiny/ask_teacher_server.json")
    (server,) = record["services"]
    assert server["version"] == "0.99.1" and server["root"] == "/models/teacher"
    assert server["answers"] == 12 and server["agreement"] == 1.0
    assert record["unread_parameters"] == []
    assert record["code"]["not_in_fingerprint"] == []
    assert not list(Path("checkpoints").iterdir())

    log = Path("logs/tiny/ask_teacher_server.log").read_text()
    told = [done.stdout, done.stderr, log, json.dumps(record)]
    assert not any(KEY in text for text in told)
    assert not any(example.prompt in text for example in examples for text in told)


def test_the_servers_own_words_are_not_passed_on_where_data_are_restricted():
    assert not harmless("the server said: refused: Mrs Marrow, 81")

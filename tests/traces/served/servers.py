"""Servers for the tests: one that speaks like vLLM, a counting proxy, and a real one."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import openai

from mechdistill.traces.served.server import ServerSettings

COMPLETIONS = "/v1/completions"


def settings(url: str, **changes: object) -> ServerSettings:
    values = {
        **{"base_url": url, "model": "teacher", "concurrency": 3, "requests_per_second": None},
        **{"timeout": 60.0, "retries": 1, "restricted_data_may_leave": False},
    }
    return ServerSettings.of(values | changes)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def read(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def listening(handler: type[Handler]) -> Iterator[str]:
    """URL of a server that runs within the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Dialect:
    """vLLM's dialect of the API as its published source has it: token ids in and out.

    `write` gives the ids behind a prompt's ids. `faults`: statuses with which the next requests
    fail. `spoil` changes an answer. `asked`: bodies of all requests for completions.
    """

    write: Callable[[list[int], int], list[int]]
    spell: Callable[[list[int]], str]
    eos: int
    max_model_len: int = 4096
    key: str | None = None
    faults: list[int] = field(default_factory=list)
    spoil: Callable[[dict], None] = lambda answer: None
    asked: list[dict] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Base URL of the API within the block."""
        dialect = self

        class Answering(Handler):
            def do_GET(self) -> None:
                status, content = dialect.get(self.path, self.headers.get("authorization"))
                self.send(status, json.dumps(content).encode())

            def do_POST(self) -> None:
                status, content = dialect.complete(json.loads(self.read()))
                self.send(status, json.dumps(content).encode())

        with listening(Answering) as url:
            yield f"{url}/v1"

    def get(self, path: str, authorization: str | None) -> tuple[int, dict]:
        if self.key and authorization != f"Bearer {self.key}":
            return 401, {"error": {"message": "Unauthorized"}}
        if path == "/version":
            return 200, {"version": "0.99.1"}
        card = {"id": "teacher", "object": "model", "created": 0, "owned_by": "vllm"}
        card |= {"root": "/models/teacher", "max_model_len": self.max_model_len}
        return 200, {"object": "list", "data": [card]}

    def complete(self, body: dict) -> tuple[int, dict]:
        self.asked.append(body)
        if self.faults:
            return self.faults.pop(0), {"error": {"message": f"refused: {body['prompt']}"}}
        prompt = body["prompt"]
        ids = self.write(prompt, body["max_tokens"])
        ended = ids[-1] == self.eos
        answer = {
            **{"id": "1", "object": "text_completion", "created": 0, "model": "teacher"},
            "system_fingerprint": "vllm-0.99.1",
            "choices": [
                {
                    **{"index": 0, "text": self.spell(ids), "token_ids": ids},
                    **{"finish_reason": "stop" if ended else "length"},
                    "prompt_token_ids": prompt,
                }
            ],
            "usage": {
                **{"prompt_tokens": len(prompt), "completion_tokens": len(ids)},
                "total_tokens": len(prompt) + len(ids),
            },
        }
        self.spoil(answer)
        return 200, answer


@dataclass
class Proxy:
    """Passes requests on to `target`, a port, and counts those for completions that were answered.

    Kills `victim` when `fatal` of them were.
    """

    target: int
    answered: int = 0
    asked: int = 0
    fatal: int | None = None
    victim: subprocess.Popen[bytes] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Base URL of the API within the block."""
        proxy = self

        class Passing(Handler):
            def do_GET(self) -> None:
                self.pass_on("GET")

            def do_POST(self) -> None:
                self.pass_on("POST")

            def pass_on(self, method: str) -> None:
                body = self.read()
                with proxy._lock:
                    proxy.asked += self.path == COMPLETIONS
                link = http.client.HTTPConnection("127.0.0.1", proxy.target, timeout=60)
                try:
                    link.request(method, self.path, body, {"content-type": "application/json"})
                    said = link.getresponse()
                    status, content = said.status, said.read()
                except OSError:
                    self.close_connection = True  # as if nobody were there
                    return
                with proxy._lock:
                    proxy.answered += self.path == COMPLETIONS and status == 200
                    if proxy.victim is not None and proxy.answered == proxy.fatal:
                        proxy.victim.kill()
                        proxy.victim.wait()
                self.send(status, content)

        with listening(Passing) as url:
            yield f"{url}/v1"


def start_transformers(folder: Path, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """`transformers serve FOLDER`, when it answers, and its port."""
    port = free_port()
    program = Path(sys.executable).with_name("transformers")
    command = [str(program), "serve", str(folder), "--port", str(port), "--device", "cpu"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    client = openai.OpenAI(base_url=f"http://localhost:{port}/v1", api_key="none", max_retries=0)
    for _ in range(1200):
        try:
            client.models.list()
            return process, port
        except openai.APIConnectionError:
            assert process.poll() is None, log.read_text()
            time.sleep(0.25)
    process.kill()
    raise AssertionError(log.read_text())

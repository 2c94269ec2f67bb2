"""A real `handrail serve` in a process of its own, and somebody who asks it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.testing.model_server import ModelServer

from .. import fork_server
from ..support import free_port, wait_until
from . import contract

TOKEN = "a-token-for-the-tests-only"


class Server:
    """One server. `client` may do everything. With `start_fresh` its process starts from nothing, has the environment that
    the kernel knows of, and runs scheduled jobs."""

    def __init__(
        self,
        home: Path,
        cwd: Path,
        *,
        config: str = "",
        token: str = TOKEN,
        port: int | None = None,
        start: Callable[..., Any] = fork_server.start,
        **env: str,
    ) -> None:
        self.home, self.cwd, self.token, self.port = home, cwd, token, port or free_port()
        self._start = start
        home.mkdir(exist_ok=True)
        if config:
            (home / "config.yaml").write_text(config)
        self.env = {
            "HANDRAIL_HOME": str(home),
            "HANDRAIL_SERVE_TOKEN": token,
            "PATH": os.environ["PATH"],
            "HOME": str(cwd),
            **env,
        }
        self.url = f"http://127.0.0.1:{self.port}"
        self.lines: list[str] = []
        self.clients: list[httpx.Client] = []
        self.start()

    def start(self) -> None:
        command = ["-m", "handrail", "serve", "--http", str(self.port)]
        if self._start is fork_server.start:
            command.append("--no-cron")  # a process that costs more than the server itself
        self.process = self._start(*command, env=self.env, cwd=self.cwd, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.lines = [self.process.stdout.readline().decode().strip() for _ in range(2)]
        wait_until(self._answers, timeout=180)
        self.client = self.as_(self.token)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server ended"
        try:
            return httpx.get(f"{self.url}/health").status_code == 200
        except httpx.TransportError:
            return False

    def as_(self, token: str = "", **options: Any) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        hooks = {"response": [contract.check]}  # every answer in these tests is what the OpenAPI page says
        client = httpx.Client(base_url=self.url, headers=headers, timeout=60, event_hooks=hooks, **options)
        self.clients.append(client)
        return client

    def browser(self, **shown: str) -> httpx.Client:
        """A browser that has logged in, with a token or with a link's code: it sends its cookie and its page's key."""
        client = self.as_()
        answer = client.post("/v1/login", json=shown or {"token": self.token})
        assert answer.status_code == 200, answer.text
        client.headers["x-handrail"] = answer.json()["page_key"]
        return client

    def code(self, role: str = "operate", client: httpx.Client | None = None) -> str:
        """The code of a new login link."""
        url: str = (client or self.client).post("/v1/links", json={"role": role}).json()["url"]
        return url.partition("code=")[2]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.client.post("/v1/calls", json={"tool": tool, "arguments": arguments}).json()["result"]

    def cli(self, *words: str) -> str:
        env = {name: value for name, value in self.env.items() if name != "HANDRAIL_SERVE_TOKEN"}
        ran = fork_server.run("-m", "handrail", *words, env=env, cwd=self.cwd)
        return ran.stdout + ran.stderr

    def waiting(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("/v1/approvals").json()["waiting"]
        return found

    def stop(self, how: int = signal.SIGTERM) -> None:
        while self.clients:
            self.clients.pop().close()
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(120)  # a busy machine takes its time, and nobody waits longer than it takes
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextlib.contextmanager
def with_model(folder: Path, model: ModelServer, *, config: str = "") -> Iterator[Server]:
    """A server whose agents have this model."""
    (folder / "work").mkdir()
    env = {"HANDRAIL_MODEL": "scripted", "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "k"}
    made = Server(folder / "served", folder / "work", config=config, **env)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Shared by a module's tests."""
    made = Server(tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("work"))
    yield made
    made.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """The test's alone: it may be killed."""
    (tmp_path / "work").mkdir()
    made = Server(tmp_path / "served", tmp_path / "work")
    yield made
    made.stop()


def events_of(response: httpx.Response) -> Iterator[tuple[str, Any, int | None]]:
    """The events of a stream: kind, data, number."""
    kind, number = "", None
    for line in response.iter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: ")), number
            kind, number = "", None

"""A runtime whose commands go through the proxy, and an approver that remembers what it was asked."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.protocols import ActionKind, Answer, ApprovalRequest, Decision
from handrail.settings.schema import Config
from handrail.settings.services import NetworkConfig, SecretConfig

from .servers import HOST, OTHER, Recorded, certified, serving

VALUE = "s3cr3t+value/0123456789=="


class Asked:
    """Answers every question about a connection with `decision`, and keeps them. Commands may run."""

    def __init__(self, decision: Decision = Decision.DENY) -> None:
        self.decision = decision
        self.requests: list[ApprovalRequest] = []

    def decide(self, request: ApprovalRequest) -> Answer:
        if request.kind is not ActionKind.CONNECT:
            return Answer(Decision.ONCE, "tests")
        self.requests.append(request)
        return Answer(self.decision, "tests", "because")

    @property
    def texts(self) -> list[str]:
        return [request.text for request in self.requests]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return certified(tmp_path_factory.mktemp("tls"), HOST, OTHER)


@pytest.fixture
def tls(certificate: tuple[ssl.SSLContext, Path]) -> Iterator[Recorded]:
    with serving(certificate[0]) as server:
        yield server


@pytest.fixture
def plain() -> Iterator[Recorded]:
    with serving() as server:
        yield server


class Task:
    """Runs commands in a task of its own."""

    def __init__(self, app: Handrail, asked: Asked) -> None:
        self.app, self.asked = app, asked

    def run(self, command: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(
            str(self.app.handle_function_call("terminal", {"command": command, **more}, task_id="t", session_id="s"))
        )
        return answer


MakeTask = Callable[..., Task]


@pytest.fixture
def make_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: tuple[ssl.SSLContext, Path]
) -> Iterator[MakeTask]:
    """`make_task(network={...}, secrets={...}, decision=...)`; the value of environment:TESTS_VALUE is `VALUE`."""
    monkeypatch.setenv("TESTS_VALUE", VALUE)
    apps: list[Handrail] = []

    def make(
        network: dict[str, Any] | None = None,
        secrets: dict[str, dict[str, Any]] | None = None,
        decision: Decision = Decision.DENY,
        **more: Any,
    ) -> Task:
        asked = Asked(decision)
        config = Config(
            network=NetworkConfig(
                **{
                    "contain": "off",
                    "resolve": {HOST: "127.0.0.1", OTHER: "127.0.0.1"},
                    "ca_file": str(certificate[1]),
                    **(network or {}),
                }
            ),
            secrets={
                name: SecretConfig(**{"source": "environment:TESTS_VALUE", "hosts": (HOST,), **each})
                for name, each in (secrets or {}).items()
            },
            **more,
        )
        app = Handrail(config, home=tmp_path / f"home{len(apps)}", approver=asked)
        app.register_task_env_overrides("t", cwd=str(tmp_path))
        apps.append(app)
        return Task(app, asked)

    yield make
    for app in apps:
        app.close()

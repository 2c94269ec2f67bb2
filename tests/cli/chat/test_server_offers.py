"""Prompts and resources of a real MCP server, as the person types them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from handrail.config.config_file import ConfigFile
from handrail.model_tools import default, reset
from handrail.protocols import ModelReply
from tests.support import wait_until

from .conftest import Talk


@pytest.fixture
def person(talk: Callable[..., Talk], plain_server: str) -> Talk:
    ConfigFile().set(("mcp_servers", "plain"), {"command": plain_server})
    reset()
    person = talk(ModelReply("Hello, Ada."), ModelReply("I read it."), ModelReply("I cannot."))
    assert person.chat.app is default()
    person.chat.app.await_toolsets(["mcp-plain"])
    return person


def test_a_prompt_is_a_slash_command(person: Talk) -> None:
    assert "Hello, Ada." in person("/plain:greet Ada Lovelace")
    assert person.sent[-1] == "Say hello to Ada Lovelace."
    assert "/plain:greet WHO" in person("/help")
    assert "needs who" in person("/plain:greet")
    assert "no command /plain:gret; did you mean /plain:greet?" in person("/plain:gret")


def test_a_resource_is_sent_along(person: Talk) -> None:
    person("Sum up @plain:notes://one please, not @nobody:x")
    assert person.sent[-1].endswith("[plain:notes://one:]\nthe note")
    assert "x:]" not in person.sent[-1]
    person("And @plain:notes://nowhere?")
    assert "[plain:notes://nowhere?:]\n[it cannot be read:" in person.sent[-1]


def test_offers_are_listed_without_waiting_for_them(person: Talk) -> None:
    person.chat.offers.refresh()
    wait_until(lambda: person.chat.offers.resources == ["plain:notes://one"])
    assert [prompt.name for prompt in person.chat.offers.prompts] == ["plain:greet"]


def test_a_prompt_that_is_being_listed_is_waited_for(person: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    offers, goes_on = person.chat.offers, threading.Event()
    listed = offers._list

    def listing() -> None:
        assert goes_on.wait(60)
        listed()

    def join() -> None:
        goes_on.set()  # somebody waits for it
        begun.join()

    monkeypatch.setattr(offers, "_list", listing)
    offers.refresh()
    begun = offers._listing
    monkeypatch.setattr(offers, "_listing", SimpleNamespace(join=join))
    assert "Hello, Ada." in person("/plain:greet Ada")


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("/plain:greet Ada", "Say hello to Ada."), ("Sum up @plain:notes://one", "[plain:notes://one:]\nthe note")],
)
def test_a_server_that_is_still_starting_is_waited_for(
    talk: Callable[..., Talk],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    plain_server: str,
    typed: str,
    sent: str,
) -> None:
    awaited = tmp_path / "awaited"
    start = f"until [ -e {awaited} ]; do sleep 0.01; done; exec {plain_server}"
    ConfigFile().set(("mcp_servers", "plain"), {"command": "sh", "args": ["-c", start]})
    reset()
    person = talk(ModelReply("Hello, Ada."))
    wait = person.chat.app.await_toolsets

    def await_toolsets(names: list[str]) -> None:
        awaited.touch()
        wait(names)

    monkeypatch.setattr(person.chat.app, "await_toolsets", await_toolsets)
    assert "Hello, Ada." in person(typed)
    assert person.sent[-1].endswith(sent)

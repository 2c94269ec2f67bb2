"""`send_message`: who can be written to, and who cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.config.config_file import ConfigFile
from handrail.model_tools import default, get_tool_definitions, handle_function_call
from handrail.platforms.base import split
from handrail.platforms.table import platforms, target_of
from handrail.protocols import Decision
from handrail.testing import RecordingApprover
from tests.support import error_in

HOOK = {"kind": "webhook", "url": "http://127.0.0.1:9/"}


@pytest.fixture
def targets(home: Path) -> None:
    ConfigFile().set("messages.targets", {"ops-team": HOOK, "ada": HOOK, "bad": {"kind": "webhok"}})
    model_tools.reset()
    model_tools.default().registry.availability.forget()


def _send(**arguments: Any) -> dict[str, Any]:
    return error_in(handle_function_call("send_message", {"message": "x", **arguments}))


def _listed() -> dict[str, Any]:
    return {each["function"]["name"]: each["function"] for each in get_tool_definitions(quiet_mode=True)}


def test_without_a_target_it_is_not_offered_and_says_what_it_needs(home: Path) -> None:
    model_tools.default().registry.availability.forget()
    assert "send_message" not in _listed()
    error = _send(target="ada")
    assert error["error_type"] == "unavailable"
    assert "messages.targets" in error["fix"]


def test_the_model_is_told_the_targets(targets: None) -> None:
    assert "ada (webhook), bad (webhok), ops-team (webhook)" in _listed()["send_message"]["description"]


def test_an_unknown_target_gets_a_suggestion(targets: None) -> None:
    error = _send(target="opsteam")
    assert error["error_type"] == "invalid_arguments"
    assert error["did_you_mean"] == "ops-team"
    assert error["known"] == ["ada", "bad", "ops-team"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"kind": "webhok"}, "did you mean 'webhook'?"),
        ({}, "None is not a kind"),
        ({"kind": "webhook"}, "give url or url_variable"),
        ({"kind": "email", "host": "h"}, "messages.targets.ada.sender: is missing"),
        ({"kind": "matrix", "homeserver": 7, "room": "!x"}, "messages.targets.ada.homeserver: must be text"),
        ({"kind": "telegram", "chat": "1", "tokn": "x"}, "messages.targets.ada.tokn: unknown key"),
    ],
)
def test_a_target_that_is_configured_badly_says_where(targets: None, settings: dict[str, Any], what: str) -> None:
    ConfigFile().set(("messages", "targets", "ada"), settings)
    model_tools.reset()
    assert what in _send(target="ada")["error"]


def test_a_missing_key_is_named(targets: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLACK_WEBHOOK_URL", raising=False)
    ConfigFile().set(("messages", "targets", "ada"), {"kind": "slack"})
    model_tools.reset()
    assert "SLACK_WEBHOOK_URL is not set" in _send(target="ada")["error"]


@pytest.mark.parametrize("message", ["", "  \n", "x" * 100_001])
def test_what_is_no_message_is_not_sent(targets: None, message: str) -> None:
    assert _send(target="ada", message=message)["error_type"] == "invalid_arguments"


def test_nobody_answers_is_said(targets: None) -> None:
    assert "cannot be reached" in _send(target="ada")["error"]


def test_the_operator_can_have_every_message_asked_about(targets: None) -> None:
    ConfigFile().set("approvals.ask_tools", ["send_message"])
    approver = RecordingApprover([Decision.DENY])
    default().runtime.approver = approver
    assert _send(target="ada", message="may I?")["error_type"] == "denied"
    (request,) = approver.requests
    assert "ada" in request.text
    assert "may I?" in request.text


def test_every_kind_says_what_it_needs_without_asking_a_server() -> None:
    needed = {
        "email": {"host": "h", "sender": "a@b", "to": ["c@d"]},
        "matrix": {"homeserver": "https://h", "room": "!r:h"},
        "telegram": {"chat": "1"},
        "webhook": {"url_variable": "X"},
        "apprise": {"url_variable": "X"},
    }
    for kind in platforms("Target"):
        target = target_of("it", {"it": {"kind": kind, **needed.get(kind, {})}})
        assert isinstance(target.takes_files, bool)
        why = target.check()
        assert why is None or why.fix


@pytest.mark.parametrize(
    "text", ["", "word", "a b c d e f g h", "line one\nline two\n", "x" * 25, "\n" * 12, "a" + " " * 30]
)
def test_a_text_is_split_without_losing_anything_but_line_ends(text: str) -> None:
    parts = split(text, 10)
    assert all(len(part) <= 10 for part in parts)
    assert "".join(parts).replace("\n", "") == text.replace("\n", "")

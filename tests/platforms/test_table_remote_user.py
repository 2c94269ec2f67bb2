"""`clarify` reaches a person in a room of a real Matrix server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail.config.config_file import ConfigFile
from handrail.model_tools import handle_function_call
from handrail.types import CancelToken
from tests.services.synapse import Matrix
from tests.support import error_in, takes_less_than, wait_until

QUESTION = {"question": "Which branch?", "choices": ["main", "next"]}


@pytest.fixture
def room(matrix_service: Matrix, target: Callable[..., None], monkeypatch: pytest.MonkeyPatch, home: Path) -> str:
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", matrix_service.token_of("bot"))
    room = matrix_service.make_room(invite=("bot", "bob"))
    matrix_service.call("bob", "POST", f"/_matrix/client/v3/join/{room}", {})
    target("ada", kind="matrix", homeserver=matrix_service.url, room=room, people=[matrix_service.id_of("ada")])
    ConfigFile().set("messages.person", "ada")
    return room


@contextmanager
def asked(matrix: Matrix, room: str, **more: Any) -> Iterator[list[str]]:
    """The call runs, and the question stands in the room. What it gives back is there at the end."""
    outcomes: list[str] = []
    thread = threading.Thread(target=lambda: outcomes.append(handle_function_call("clarify", QUESTION, **more)))
    thread.start()
    wait_until(lambda: matrix.messages(room), timeout=30)
    yield outcomes
    thread.join()


def test_an_answer_in_the_room_reaches_the_model(matrix_service: Matrix, room: str) -> None:
    matrix_service.say("ada", room, "something from before")
    matrix_service.call("bot", "POST", f"/_matrix/client/v3/join/{room}", {})
    outcomes: list[str] = []
    thread = threading.Thread(target=lambda: outcomes.append(handle_function_call("clarify", QUESTION)))
    thread.start()
    wait_until(lambda: len(matrix_service.messages(room)) == 2, timeout=30)
    assert matrix_service.messages(room)[-1]["body"].splitlines()[:3] == ["Which branch?", "1. main", "2. next"]
    matrix_service.say("bob", room, "1")
    matrix_service.say("ada", room, "2")
    thread.join()
    assert json.loads(outcomes[0]) == {"question": "Which branch?", "answer": "next", "answered": True}


def test_a_reply_is_taken_without_the_quoted_question(matrix_service: Matrix, room: str) -> None:
    with asked(matrix_service, room) as outcomes:
        body = f"> <{matrix_service.id_of('bot')}> Which branch?\n> 1. main\n\na new one"
        relation = {"m.in_reply_to": {"event_id": "$any"}}
        matrix_service.say("ada", room, body, **{"m.relates_to": relation})
    assert json.loads(outcomes[0])["answer"] == "a new one"


def test_nobody_answers_in_time(matrix_service: Matrix, room: str) -> None:
    ConfigFile().set("messages.answer_timeout", 1)
    with asked(matrix_service, room) as outcomes:
        matrix_service.say("bob", room, "main")
    assert error_in(outcomes[0])["answered"] is False


def test_waiting_can_be_cancelled(matrix_service: Matrix, room: str) -> None:
    cancel = CancelToken()
    with takes_less_than(30), asked(matrix_service, room, cancel=cancel) as outcomes:
        cancel.cancel()
    assert error_in(outcomes[0])["error_type"] == "cancelled"


def test_a_target_where_nobody_can_write_back_is_said(target: Callable[..., None]) -> None:
    target("hook", kind="webhook", url="http://127.0.0.1:9")
    ConfigFile().set("messages.person", "hook")
    assert "nobody can write back" in error_in(handle_function_call("clarify", QUESTION))["error"]

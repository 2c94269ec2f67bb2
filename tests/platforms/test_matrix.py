"""Messages to rooms of a real Matrix server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.errors import ToolFailed
from handrail.platforms.matrix import Adapter, Settings
from tests.services.synapse import Matrix

from .conftest import Send

ENCRYPTION = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}


@pytest.fixture
def room(matrix_service: Matrix, target: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> str:
    """A room to which the bot is invited, as the target `ops`."""
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", matrix_service.token_of("bot"))
    room = matrix_service.make_room()
    target("ops", kind="matrix", homeserver=matrix_service.url, room=room)
    return room


def test_a_message_stands_in_the_room(matrix_service: Matrix, room: str, send: Send) -> None:
    answer = send("ops", "the build is green 🎉", subject="News")
    assert answer["sent"] is True
    (message,) = matrix_service.messages(room)
    assert message["body"] == "News\n\nthe build is green 🎉"
    assert message["sender"] == matrix_service.id_of("bot")
    assert len(answer["event_ids"]) == 1


def test_a_room_can_be_named_by_its_alias(
    matrix_service: Matrix, room: str, target: Callable[..., None], send: Send
) -> None:
    other = matrix_service.make_room(room_alias_name="general", preset="public_chat")
    target("general", kind="matrix", homeserver=matrix_service.url, room="#general:localhost")
    assert send("general", "by its name")["sent"] is True
    assert [message["body"] for message in matrix_service.messages(other)] == ["by its name"]


def test_a_long_message_comes_in_parts_and_nothing_is_lost(matrix_service: Matrix, room: str, send: Send) -> None:
    text = "\n".join(f"line {number} ünïcode" for number in range(3000))
    assert len(send("ops", text)["event_ids"]) > 1
    assert "\n".join(message["body"] for message in matrix_service.messages(room)) == text


def test_files_are_uploaded(matrix_service: Matrix, room: str, send: Send, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("what happened")
    assert send("ops", "see the file", attachments=[str(tmp_path / "notes.txt")])["sent"] is True
    said, file = matrix_service.messages(room)
    assert (said["body"], file["body"], file["msgtype"]) == ("see the file", "notes.txt", "m.file")
    path = file["url"].removeprefix("mxc://")
    assert matrix_service.call("ada", "GET", f"/_matrix/client/v1/media/download/{path}", raw=True) == b"what happened"


def test_an_encrypted_room_gets_nothing_in_the_clear(
    matrix_service: Matrix, target: Callable[..., None], room: str, send: Send
) -> None:
    secret = matrix_service.make_room(initial_state=[ENCRYPTION])
    target("secret", kind="matrix", homeserver=matrix_service.url, room=secret)
    assert "encrypted" in send("secret", "psst")["error"]
    assert matrix_service.messages(secret) == []


def test_an_account_sends_nothing_to_an_encrypted_room_either(
    matrix_service: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", matrix_service.token_of("bot"))
    secret = matrix_service.make_room(initial_state=[ENCRYPTION])

    async def chat() -> None:
        adapter = Adapter(Settings(homeserver=matrix_service.url))
        await adapter.connect()
        updates = adapter.receive("")
        await anext(updates)  # accepts the invitation
        await anext(updates)
        with pytest.raises(ToolFailed, match="encrypted"):
            await adapter.send(secret, "psst", key="k")
        with pytest.raises(ToolFailed, match="encrypted"):
            await adapter.send_file(secret, "a.txt", b"psst", key="k")
        await updates.aclose()  # type: ignore[attr-defined]
        await adapter.disconnect()

    asyncio.run(chat())
    assert matrix_service.messages(secret) == []


def test_a_room_without_an_invitation_is_closed(
    matrix_service: Matrix, target: Callable[..., None], room: str, send: Send
) -> None:
    target("closed", kind="matrix", homeserver=matrix_service.url, room=matrix_service.make_room(invite=()))
    error = send("closed")
    assert error["status"] == 403
    assert "tell the user" in error["error"]


def test_a_wrong_key_is_said_and_not_shown(
    matrix_service: Matrix, room: str, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATRIX_ACCESS_TOKEN", "syt_wrong_key_of_nobody")
    error = send("ops")["error"]
    assert "401" in error
    assert "syt_wrong" not in error

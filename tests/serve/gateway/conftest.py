"""A real `handrail serve` with a Matrix account of its own, on a real Synapse; the model says what it is told to say."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from handrail.testing import ModelServer
from tests.services.synapse import Matrix
from tests.support import wait_until

from ..conftest import Server


class Room:
    """A room as the people in it see it."""

    def __init__(self, matrix: Matrix, bot: str, *, people: tuple[str, ...] = ("ada",)) -> None:
        self.matrix, self.bot = matrix, bot
        self.id = matrix.make_room(people[0], invite=(bot, *people[1:]))
        for person in people[1:]:
            matrix.call(person, "POST", f"/_matrix/client/v3/join/{quote(self.id)}", {})

    def say(self, text: str, *, by: str = "ada", **more: Any) -> None:
        self.matrix.say(by, self.id, text, **more)

    def events(self) -> list[dict[str, Any]]:
        """What the bot wrote, oldest first."""
        path = f"/_matrix/client/v3/rooms/{quote(self.id)}/messages?dir=b&limit=200"
        found = self.matrix.call("ada", "GET", path)["chunk"]
        mine = [each for each in reversed(found) if each["sender"] == self.matrix.id_of(self.bot)]
        return [each for each in mine if each["type"] == "m.room.message"]

    def bodies(self) -> list[str]:
        return [str(each["content"].get("body", "")) for each in self.events()]

    def hears(self, words: str) -> dict[str, Any]:
        """The first message of the bot that has these words, when it has come."""
        found: list[dict[str, Any]] = []

        def has_come() -> bool:
            found[:] = [each for each in self.events() if words in str(each["content"].get("body", ""))]
            return bool(found)

        wait_until(has_come, timeout=30, otherwise=lambda: f"nobody said {words!r}: {self.bodies()}")
        return found[0]

    def react(self, event: dict[str, Any], sign: str, *, by: str = "ada") -> None:
        path = f"/_matrix/client/v3/rooms/{quote(self.id)}/send/m.reaction/{secrets.token_hex(8)}"
        about = {"rel_type": "m.annotation", "event_id": event["event_id"], "key": sign}
        self.matrix.call(by, "PUT", path, {"m.relates_to": about})


class Place:
    """A server, its model, and an account in Matrix."""

    def __init__(self, matrix: Matrix, folder: Path, *, timeout: float = 120.0, url: str = "") -> None:
        self.matrix, self.bot = matrix, f"bot-{secrets.token_hex(4)}"
        token = matrix.register(self.bot)
        self.model = ModelServer()
        self.model.__enter__()
        self.work = folder / "work"
        self.work.mkdir()
        self.home = self.room()
        account = {
            "kind": "matrix",
            "home": self.home.id,
            "homeserver": url or matrix.url,
            "token_variable": "BOT_TOKEN",
        }
        config = {"gateway": {"accounts": {"chat": account}}, "approvals": {"timeout": timeout}}
        self.server = Server(
            folder / "served",
            self.work,
            config=json.dumps(config),
            BOT_TOKEN=token,
            HANDRAIL_MODEL="scripted",
            OPENAI_BASE_URL=self.model.base_url,
            OPENAI_API_KEY="k",
        )

    def room(self, *people: str) -> Room:
        return Room(self.matrix, self.bot, people=people or ("ada",))

    def pair(self) -> None:
        """From now on ada is served."""
        self.home.say(self.server.client.post("/v1/people/codes").json()["code"])
        self.home.hears("Welcome")

    def folder(self, name: str) -> Path:
        (self.work / name).mkdir()
        return self.work / name

    def close(self) -> None:
        self.server.stop()
        self.model.__exit__(None, None, None)


@pytest.fixture(scope="module")
def place(matrix_service: Matrix, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Shared by a module's tests; ada is paired."""
    made = Place(matrix_service, tmp_path_factory.mktemp("gateway"))
    try:
        made.pair()
        yield made
    finally:
        made.close()

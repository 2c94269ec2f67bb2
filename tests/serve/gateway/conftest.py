"""A real `handrail serve` with a Matrix account of its own, on a real Synapse; the model says what it is told to say."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from handrail.testing import ModelServer
from tests import conftest
from tests.services.synapse import Matrix

from ..conftest import Server
from .line import Line

_PATIENCE_SECONDS = 60.0


def lives_on(loop: asyncio.AbstractEventLoop) -> None:
    """It serves all tests of a module: none of them has left it running."""
    conftest._loops[:] = [counted for counted in conftest._loops if counted[0]() is not loop]


class Room:
    """A room as the people in it see it."""

    def __init__(self, matrix: Matrix, bot: str, *, people: tuple[str, ...] = ("ada",)) -> None:
        self.matrix, self.bot, self._reader = matrix, bot, people[0]
        self.id = matrix.make_room(people[0], invite=(bot, *people[1:]))
        for person in people[1:]:
            matrix.call(person, "POST", f"/_matrix/client/v3/join/{quote(self.id)}", {})

    def say(self, text: str, *, by: str = "ada", **more: Any) -> None:
        self.matrix.say(by, self.id, text, **more)

    def events(self) -> list[dict[str, Any]]:
        """What the bot wrote, oldest first."""
        path = f"/_matrix/client/v3/rooms/{quote(self.id)}/messages?dir=b&limit=200"
        found = self.matrix.call(self._reader, "GET", path)["chunk"]
        mine = [each for each in reversed(found) if each["sender"] == self.matrix.id_of(self.bot)]
        return [each for each in mine if each["type"] == "m.room.message"]

    def bodies(self) -> list[str]:
        return [str(each["content"].get("body", "")) for each in self.events()]

    def shown(self) -> list[str]:
        """What stands there now: each message as it was last rewritten."""
        texts: dict[str, str] = {}
        for event in self.events():
            content = event["content"]
            about = content.get("m.relates_to", {})
            if about.get("rel_type") == "m.replace":
                texts[about["event_id"]] = content["m.new_content"]["body"]
            else:
                texts[event["event_id"]] = content["body"]
        return list(texts.values())

    def hears(self, words: str) -> dict[str, Any]:
        """The first message of the bot that has these words, when it has come."""
        end = time.monotonic() + _PATIENCE_SECONDS
        place = self.wait_for_news("")
        while time.monotonic() < end:
            for event in self.events():
                if words in str(event["content"].get("body", "")):
                    return event
            place = self.wait_for_news(place)
        raise AssertionError(f"nobody said {words!r}: {self.bodies()}")

    def wait_for_news(self, place: str) -> str:
        """Wait until something has happened here since that place, or for some seconds: the place after it."""
        nothing: dict[str, list[str]] = {"types": []}
        here = {"rooms": [self.id], "state": nothing, "ephemeral": nothing, "account_data": nothing}
        wanted = {"room": {**here, "timeline": {"limit": 1}}, "presence": nothing, "account_data": nothing}
        query = {"filter": json.dumps(wanted)} | ({"since": place, "timeout": "5000"} if place else {})
        answer = self.matrix.call(self._reader, "GET", f"/_matrix/client/v3/sync?{urlencode(query)}")
        return str(answer["next_batch"])

    def react(self, event: dict[str, Any], sign: str, *, by: str = "ada") -> None:
        path = f"/_matrix/client/v3/rooms/{quote(self.id)}/send/m.reaction/{secrets.token_hex(8)}"
        about = {"rel_type": "m.annotation", "event_id": event["event_id"], "key": sign}
        self.matrix.call(by, "PUT", path, {"m.relates_to": about})


class Place:
    """A server, its model, and an account in Matrix, by a line that can be cut."""

    def __init__(self, matrix: Matrix, folder: Path, *, timeout: float = 300.0) -> None:
        self.matrix, self.bot = matrix, f"bot-{secrets.token_hex(4)}"
        self.line = Line(matrix.url)
        token = matrix.register(self.bot)
        self.model = ModelServer()
        self.model.__enter__()
        self.work = folder / "work"
        self.work.mkdir()
        self.home = self.room()
        account = {
            "kind": "matrix",
            "home": self.home.id,
            "homeserver": self.line.url,
            "token_variable": "BOT_TOKEN",
        }
        config = {"gateway": {"accounts": {"chat": account}}, "approvals": {"timeout": timeout}}
        self.server = Server(
            folder / "served",
            self.work,
            config=json.dumps(config),
            HOME=str(folder),  # work is below the home, as it is for people
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
        self.line.close()


@pytest.fixture(scope="module")
def place(matrix_service: Matrix, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Shared by a module's tests; ada is paired."""
    made = Place(matrix_service, tmp_path_factory.mktemp("gateway"))
    lives_on(made.line.loop)
    try:
        made.pair()
        yield made
    finally:
        made.close()

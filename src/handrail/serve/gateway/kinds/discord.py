"""Discord channels, by a bot on Discord's gateway. Questions have buttons."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import ToolFailed
from ....protocols import Decision
from ..base import News, Pressed, Said, Unreachable, sign_of
from ..sockets import Socket, opened
from ..wire import Wire, token_of

# Messages in servers, messages to the bot alone, and what they say.
_INTENTS = 1 << 9 | 1 << 12 | 1 << 15
_EVENT, _BEAT, _IDENTIFY, _RECONNECT, _INVALID, _HELLO = 0, 1, 2, 7, 9, 10
_BUTTON_TAPPED, _ACKNOWLEDGE = 3, 6
_ROW, _BUTTON, _GREY, _RED = 1, 2, 2, 4
_NONCE_CHARS = 25
_DECISIONS = {decision.value: decision for decision in Decision}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The bot needs the intent for what messages say, which is switched on in Discord's developer portal."""

    token_variable: str = "DISCORD_BOT_TOKEN"
    server: str = "https://discord.com/api/v10"


class Adapter:
    can_edit = True
    max_chars = 2000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._wire: Wire | None = None
        self._token = ""
        self._id = ""
        self._last: int | None = None

    async def connect(self) -> None:
        self._token = token_of(self._settings.token_variable)
        headers = {"authorization": f"Bot {self._token}"}
        self._wire = Wire("Discord", f"{self._settings.server.rstrip('/')}/", key=self._token, headers=headers)
        self._id = str((await self._call("GET", "users/@me", again=True))["id"])

    async def disconnect(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    async def receive(self, place: str) -> AsyncIterator[News]:  # noqa: ARG002  what came meanwhile is not told again
        told = await self._call("GET", "gateway/bot", again=True)
        async with opened("Discord", f"{told['url']}?v=10&encoding=json", extra="discord") as socket:
            hello = await socket.receive()
            if hello.get("op") != _HELLO:
                raise Unreachable("Discord does not say hello")
            self._last = None
            beating = asyncio.create_task(self._beat(socket, hello["d"]["heartbeat_interval"] / 1000))
            try:
                await socket.send({"op": _IDENTIFY, "d": self._identity()})
                while True:
                    yield News("", await self._events(await socket.receive()))
            finally:
                beating.cancel()
                await asyncio.wait({beating})

    def _identity(self) -> dict[str, Any]:
        names = {"os": "linux", "browser": "handrail", "device": "handrail"}
        return {"token": self._token, "intents": _INTENTS, "properties": names}

    async def _beat(self, socket: Socket, seconds: float) -> None:
        with contextlib.suppress(Unreachable):  # who receives notices it too
            while True:
                await asyncio.sleep(seconds)
                await socket.send({"op": _BEAT, "d": self._last})

    async def _events(self, told: dict[str, Any]) -> Sequence[Said | Pressed]:
        if told.get("op") in (_RECONNECT, _INVALID):
            raise Unreachable("Discord wants us to connect anew")
        if told.get("op") != _EVENT:
            return ()
        self._last, data = told.get("s"), told.get("d") or {}
        event: Said | Pressed | None = None
        if told.get("t") == "MESSAGE_CREATE":
            event = self._said(data)
        elif told.get("t") == "INTERACTION_CREATE" and data.get("type") == _BUTTON_TAPPED:
            event = await self._tapped(data)
        return (event,) if event else ()

    def _said(self, data: dict[str, Any]) -> Said | None:
        author, text = data.get("author") or {}, str(data.get("content", ""))
        if author.get("bot") or not author.get("id") or data.get("webhook_id"):
            return None
        is_for_us = any(each.get("id") == self._id for each in data.get("mentions") or ())
        for name in (f"<@{self._id}>", f"<@!{self._id}>"):
            text = text.replace(name, "")
        return Said(str(data["channel_id"]), str(author["id"]), text.strip(" :,"), not data.get("guild_id"), is_for_us)

    async def _tapped(self, data: dict[str, Any]) -> Pressed | None:
        # Without this Discord tells the person that it has failed.
        with contextlib.suppress(ToolFailed, Unreachable):
            path = f"interactions/{data['id']}/{data['token']}/callback"
            await self._call("POST", path, again=True, json={"type": _ACKNOWLEDGE})
        decision = _DECISIONS.get(str((data.get("data") or {}).get("custom_id")))
        who = (data.get("member") or data).get("user") or {}
        if decision is None or not who.get("id"):
            return None
        return Pressed(str(data["channel_id"]), str(who["id"]), str(data["message"]["id"]), decision)

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        # The same nonce within some minutes is the same message.
        once = {"nonce": hashlib.sha256(key.encode()).hexdigest()[:_NONCE_CHARS], "enforce_nonce": True}
        body = {**_body(text, offers), **once}
        return str((await self._call("POST", f"channels/{chat}/messages", again=True, json=body))["id"])

    async def edit(self, chat: str, message: str, text: str) -> None:
        await self._call("PATCH", f"channels/{chat}/messages/{message}", again=True, json=_body(text, ()))

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:
        once = {"nonce": hashlib.sha256(key.encode()).hexdigest()[:_NONCE_CHARS], "enforce_nonce": True}
        await self._call(
            "POST",
            f"channels/{chat}/messages",
            again=True,
            data={"payload_json": json.dumps({**_body("", ()), **once})},
            files={"files[0]": (name, data, "text/plain")},
        )

    async def _call(self, method: str, path: str, **content: Any) -> Any:
        if self._wire is None:
            raise Unreachable("Discord is not connected")
        return await self._wire.call(method, path, **content)


def _body(text: str, offers: Sequence[Decision]) -> dict[str, Any]:
    """No text of an agent calls everyone."""
    buttons = [
        {
            "type": _BUTTON,
            "style": _RED if each is Decision.DENY else _GREY,
            "label": f"{sign_of(each)} {each.value}",
            "custom_id": each.value,
        }
        for each in offers
    ]
    rows = [{"type": _ROW, "components": buttons}] if buttons else []
    return {"content": text, "allowed_mentions": {"parse": []}, "components": rows}

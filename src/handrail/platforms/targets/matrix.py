"""A Matrix room, by the server's own HTTP API. Rooms that are encrypted are refused: nothing goes there in the clear."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ...core.availability import first_lack, missing
from ...errors import CallTimeout, ToolFailed
from ...net.http_client import Reply, ask
from ...types import Unavailable
from ..message import UPLOAD_SECONDS, Attachment, Message, absent, secret, split

# The whole event may have 64 KiB, in UTF-8 and as JSON.
_MAX_CHARS = 10_000
_POLL_SECONDS = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`room` is an id (`!...`) or an alias (`#...`). `people` are the users whose answers count; everyone's, if empty."""

    homeserver: str
    room: str
    token_variable: str = "MATRIX_ACCESS_TOKEN"
    people: tuple[str, ...] = ()

    takes_files = True

    def check(self) -> Unavailable | None:
        return first_lack(missing("messages", "httpx"), absent(self.token_variable))

    async def send(self, message: Message) -> dict[str, Any]:
        room = await self._open_room()
        parts = split(message.whole, _MAX_CHARS)
        events = [await self._post(room, {"msgtype": "m.text", "body": part}) for part in parts]
        for each in message.attachments:
            events.append(await self._post(room, await self._uploaded(each)))
        return {"room": room, "event_ids": events}

    async def ask(self, question: str, *, seconds: float) -> str | None:
        """The next text that one of the people writes after the question; None when nobody does in time."""
        room = await self._open_room()
        me = (await self._good("GET", "/_matrix/client/v3/account/whoami"))["user_id"]
        since = (await self._sync(room, None))["next_batch"]
        await self._post(room, {"msgtype": "m.text", "body": question})
        try:
            async with asyncio.timeout(seconds):
                async for event in self._events(room, since):
                    if event.get("sender") != me and self._counts(event):
                        return _without_quote(event["content"])
        except CallTimeout:  # of the server: it is not the person who is silent
            raise
        except TimeoutError:
            pass
        return None

    def _counts(self, event: dict[str, Any]) -> bool:
        """Whether it is a text by one of the people."""
        may_answer = not self.people or event.get("sender") in self.people
        return may_answer and event.get("content", {}).get("msgtype") == "m.text"

    async def _events(self, room: str, since: str) -> AsyncIterator[dict[str, Any]]:
        while True:
            news = await self._sync(room, since)
            since = news["next_batch"]
            joined = news.get("rooms", {}).get("join", {}).get(room, {})
            for event in joined.get("timeline", {}).get("events", []):
                yield event

    async def _sync(self, room: str, since: str | None) -> dict[str, Any]:
        nothing: dict[str, list[str]] = {"types": []}
        only = {
            "presence": nothing,
            "account_data": nothing,
            "room": {
                "rooms": [room],
                "state": nothing,
                "ephemeral": nothing,
                "account_data": nothing,
                "timeline": {"types": ["m.room.message"], "limit": 50},
            },
        }
        wait = {"since": since, "timeout": str(int(_POLL_SECONDS * 1000))} if since else {"timeout": "0"}
        params = {"filter": json.dumps(only), **wait}
        return await self._good("GET", "/_matrix/client/v3/sync", seconds=_POLL_SECONDS + 30, params=params)

    async def _open_room(self) -> str:
        """The room's id, joined. Raises ToolFailed when it is encrypted or cannot be entered."""
        # Joining a room that one is in changes nothing, and resolves an alias.
        room: str = (await self._good("POST", f"/_matrix/client/v3/join/{quote(self.room, safe='')}", json={}))[
            "room_id"
        ]
        state = await self._call("GET", f"/_matrix/client/v3/rooms/{quote(room, safe='')}/state/m.room.encryption")
        if state.is_good:
            raise ToolFailed("the Matrix room is encrypted, and messages would be sent in the clear; tell the user")
        if state.status != 404:
            raise state.failure("the Matrix server")
        return room

    async def _post(self, room: str, content: dict[str, Any]) -> str:
        path = f"/_matrix/client/v3/rooms/{quote(room, safe='')}/send/m.room.message/{uuid.uuid4().hex}"
        event: str = (await self._good("PUT", path, json=content))["event_id"]
        return event

    async def _uploaded(self, attachment: Attachment) -> dict[str, Any]:
        told = await self._good(
            "POST",
            "/_matrix/media/v3/upload",
            seconds=UPLOAD_SECONDS,
            params={"filename": attachment.name},
            headers={"content-type": attachment.mime},
            content=attachment.data,
        )
        kind = {"image": "m.image", "audio": "m.audio", "video": "m.video"}.get(
            attachment.mime.partition("/")[0], "m.file"
        )
        info = {"mimetype": attachment.mime, "size": len(attachment.data)}
        return {"msgtype": kind, "body": attachment.name, "url": told["content_uri"], "info": info}

    async def _good(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        reply = await self._call(method, path, **content)
        told = reply.json()
        if not reply.is_good or not isinstance(told, dict):
            raise reply.failure("the Matrix server")
        return told

    async def _call(self, method: str, path: str, *, headers: dict[str, str] | None = None, **content: Any) -> Reply:
        allowed = {"authorization": f"Bearer {secret(self.token_variable)}", **(headers or {})}
        url = self.homeserver.rstrip("/") + path
        return await ask(method, url, what="the Matrix server", headers=allowed, **content)


def _without_quote(content: dict[str, Any]) -> str:
    """What a person wrote, without the question that a client quotes above a reply."""
    body = str(content.get("body", ""))
    if "m.in_reply_to" not in content.get("m.relates_to", {}):
        return body
    lines = body.splitlines()
    while lines and lines[0].startswith("> "):
        lines.pop(0)
    return "\n".join(lines).strip() or body

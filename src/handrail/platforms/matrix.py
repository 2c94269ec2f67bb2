"""Matrix: messages to a room, and chats in rooms, where questions are answered by reactions.

Encrypted rooms are refused: nothing is sent there in the clear.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from ..base.lazy_module import lazy_import
from ..errors import CallTimeout, HandrailError, ToolFailed
from ..net.http_client import Reply, ask
from ..protocols import Decision
from ..types import Unavailable
from . import base

if TYPE_CHECKING:
    import aiohttp
    import nio
else:
    aiohttp, nio = lazy_import("aiohttp"), lazy_import("nio")

T = TypeVar("T")

_CLIENT_API, _MEDIA_API = "/_matrix/client/v3", "/_matrix/media/v3"
_TOKEN_VARIABLE = "MATRIX_ACCESS_TOKEN"
# An event may have 64 KiB, in UTF-8 and as JSON.
_MAX_CHARS = 10_000
_POLL_MS = 25_000
_REQUEST_SECONDS = 30.0
_MAX_SECONDS = 90.0
_NOTHING: dict[str, list[str]] = {"types": []}


def _sync_filter(**room: Any) -> dict[str, Any]:
    room = {"ephemeral": _NOTHING, "account_data": _NOTHING, **room}
    return {"presence": _NOTHING, "account_data": _NOTHING, "room": room}


_CHAT_FILTER = _sync_filter(
    state={"types": ["m.room.member", "m.room.encryption", "m.room.create"]},
    timeline={
        "types": ["m.room.message", "m.reaction", "m.room.member", "m.room.encryption", "m.room.encrypted"],
        "limit": 100,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`room` is an id (`!...`) or an alias (`#...`). `people` are the users whose answers count; if empty, everyone's do."""

    homeserver: str
    room: str
    token_variable: str = _TOKEN_VARIABLE
    people: tuple[str, ...] = ()

    takes_files = True

    def check(self) -> Unavailable | None:
        return base.http_unavailable(self.token_variable)

    async def send(self, message: base.OutgoingMessage) -> dict[str, Any]:
        room = await self._open_room()
        parts = base.split(message.full_text, _MAX_CHARS)
        events = [await self._post(room, {"msgtype": "m.text", "body": part}) for part in parts]
        for each in message.attachments:
            events.append(await self._post(room, await self._uploaded(each)))
        return {"room": room, "event_ids": events}

    async def ask(self, question: str, *, seconds: float) -> str | None:
        """The next text that one of the people writes after the question; None if nobody does in time."""
        room = await self._open_room()
        me = (await self._good("GET", "/account/whoami"))["user_id"]
        since = (await self._sync(room, None))["next_batch"]
        await self._post(room, {"msgtype": "m.text", "body": question})
        try:
            async with asyncio.timeout(seconds):
                async for event in self._events(room, since):
                    sender, content = event.get("sender"), event.get("content", {})
                    may_answer = sender != me and (not self.people or sender in self.people)
                    if may_answer and content.get("msgtype") == "m.text":
                        return _without_quote(content) or str(content.get("body", ""))
        except CallTimeout:  # the server is silent, not the user
            raise
        except TimeoutError:
            pass
        return None

    async def _events(self, room: str, since: str) -> AsyncIterator[dict[str, Any]]:
        while True:
            update = await self._sync(room, since)
            since = update["next_batch"]
            joined = update.get("rooms", {}).get("join", {}).get(room, {})
            for event in joined.get("timeline", {}).get("events", []):
                yield event

    async def _sync(self, room: str, since: str | None) -> dict[str, Any]:
        timeline = {"types": ["m.room.message"], "limit": 50}
        only = _sync_filter(rooms=[room], state=_NOTHING, timeline=timeline)
        wait = {"since": since, "timeout": str(_POLL_MS)} if since else {"timeout": "0"}
        params = {"filter": json.dumps(only), **wait}
        return await self._good("GET", "/sync", seconds=_POLL_MS / 1000 + 30, params=params)

    async def _open_room(self) -> str:
        """Join the room and return its id. Raises ToolFailed if it is encrypted or cannot be entered."""
        # Joining again changes nothing, and resolves an alias.
        joined = await self._good("POST", f"/join/{quote(self.room, safe='')}", json={})
        room: str = joined["room_id"]
        state = await self._call("GET", f"/rooms/{quote(room, safe='')}/state/m.room.encryption")
        if state.is_good:
            raise ToolFailed("the Matrix room is encrypted, and messages would be sent in the clear; tell the user")
        if state.status != 404:
            raise state.failure("the Matrix server")
        return room

    async def _post(self, room: str, content: dict[str, Any]) -> str:
        path = f"/rooms/{quote(room, safe='')}/send/m.room.message/{uuid.uuid4().hex}"
        event: str = (await self._good("PUT", path, json=content))["event_id"]
        return event

    async def _uploaded(self, attachment: base.Attachment) -> dict[str, Any]:
        uploaded = await self._good(
            "POST",
            "/upload",
            api=_MEDIA_API,
            seconds=base.UPLOAD_SECONDS,
            params={"filename": attachment.name},
            headers={"content-type": attachment.mime},
            content=attachment.data,
        )
        kind = {"image": "m.image", "audio": "m.audio", "video": "m.video"}.get(
            attachment.mime.partition("/")[0], "m.file"
        )
        info = {"mimetype": attachment.mime, "size": len(attachment.data)}
        return {"msgtype": kind, "body": attachment.name, "url": uploaded["content_uri"], "info": info}

    async def _good(self, method: str, path: str, **content: Any) -> dict[str, Any]:
        reply = await self._call(method, path, **content)
        answer = reply.json()
        if not reply.is_good or not isinstance(answer, dict):
            raise reply.failure("the Matrix server")
        return answer

    async def _call(
        self, method: str, path: str, *, api: str = _CLIENT_API, headers: dict[str, str] | None = None, **content: Any
    ) -> Reply:
        authorized = {"authorization": f"Bearer {base.target_key(self.token_variable)}", **(headers or {})}
        url = f"{self.homeserver.rstrip('/')}{api}{path}"
        return await ask(method, url, what="the Matrix server", headers=authorized, **content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The agent's own account: its server, and the variable with its access token."""

    homeserver: str
    token_variable: str = _TOKEN_VARIABLE


class Adapter:
    can_edit = True
    needs_reply = False
    # Below _MAX_CHARS, as an edit has its text twice.
    max_chars = 4_000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: nio.AsyncClient | None = None
        self._warned_rooms: set[str] = set()
        self._signing: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        token = base.account_token(self._settings.token_variable)
        await base.load_sdk("Matrix", "nio", extra="matrix")
        # No retries: the caller decides whether to try again.
        config = nio.AsyncClientConfig(
            max_timeouts=0, max_limit_exceeded=3, encryption_enabled=False, request_timeout=_REQUEST_SECONDS
        )
        self._client = nio.AsyncClient(self._settings.homeserver, config=config)
        self._client.access_token = token
        try:
            me = _good(await self._request(self._client.whoami()), nio.WhoamiResponse)
        except BaseException:
            await self.disconnect()
            raise
        self._client.user_id = self._client.user = me.user_id

    async def disconnect(self) -> None:
        client, self._client = self._client, None
        for signing in self._signing:
            signing.cancel()
        if client is not None:
            await client.close()

    async def receive(self, cursor: str) -> AsyncIterator[base.Updates]:
        client, first = self._connected, True
        while True:
            answer = client.sync(0 if first else _POLL_MS, _CHAT_FILTER, since=cursor or None, full_state=first)
            update = _good(await self._request(answer), nio.SyncResponse)
            for room in update.rooms.invite:
                await self._request(client.join(room))
            is_old = first and not cursor
            events: list[base.Message | base.ButtonPress] = []
            for room, joined in update.rooms.join.items() if not is_old else ():
                events += [each for event in joined.timeline.events if (each := await self._event(room, event))]
            first, cursor = False, update.next_batch
            yield base.Updates(cursor, events)

    async def _event(self, room: str, event: Any) -> base.Message | base.ButtonPress | None:
        if event.sender == self._connected.user_id:
            return None
        if isinstance(event, nio.MegolmEvent):
            await self._warn_encrypted(room)
        if isinstance(event, nio.ReactionEvent):
            decision = base.decision_of(event.key)
            return base.ButtonPress(room, event.sender, event.reacts_to, decision) if decision else None
        content = event.source.get("content", {})
        is_edit = _relation(content).get("rel_type") == "m.replace"
        if not isinstance(event, nio.RoomMessageText) or is_edit:
            return None
        known = self._connected.rooms.get(room)
        is_direct = known is not None and known.member_count <= 2
        quoted = _relation(content).get("m.in_reply_to")
        return base.Message(
            room,
            event.sender,
            self._without_us(content),
            is_direct,
            self._is_for_us(content),
            event.server_timestamp / 1000,
            str(quoted.get("event_id", "")) if isinstance(quoted, dict) else "",
        )

    def _is_for_us(self, content: dict[str, Any]) -> bool:
        mentions = content.get("m.mentions")
        named = mentions.get("user_ids") if isinstance(mentions, dict) else None
        if isinstance(named, list):
            return self._connected.user_id in named
        return self._connected.user_id in str(content.get("body", ""))

    def _without_us(self, content: dict[str, Any]) -> str:
        """The text without our name at its start, and without the quote of a reply."""
        text, me = _without_quote(content).strip(), self._connected.user_id
        for name in (me, me[1:].partition(":")[0], "@" + me[1:].partition(":")[0]):
            if text.lower().startswith(name.lower()) and not text[len(name) :][:1].isalnum():
                return text[len(name) :].lstrip(" :,")
        return text

    async def _warn_encrypted(self, room: str) -> None:
        if room not in self._warned_rooms:
            self._warned_rooms.add(room)
            text = "I cannot read encrypted rooms. Invite me to one without encryption, on a server that you trust."
            with contextlib.suppress(ToolFailed):
                await self._put(room, {"msgtype": "m.notice", "body": text}, key=f"encrypted-{room}")

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        message = await self._put(chat, {"msgtype": "m.text", "body": text}, key=key)
        if offers:
            # In the background: a user may answer before the last sign is there.
            signing = asyncio.create_task(self._add_signs(chat, message, offers, key=key))
            self._signing.add(signing)
            signing.add_done_callback(self._signing.discard)
        return message

    async def _add_signs(self, chat: str, message: str, offers: Sequence[Decision], *, key: str) -> None:
        """Failures are ignored: a question can also be answered by commands."""
        with contextlib.suppress(HandrailError):
            for decision in offers:
                shown = {"rel_type": "m.annotation", "event_id": message, "key": base.sign_of(decision)}
                await self._put(chat, {"m.relates_to": shown}, key=f"{key}-{decision.value}", kind="m.reaction")

    async def edit(self, chat: str, message: str, text: str) -> None:
        new = {"msgtype": "m.text", "body": text}
        relates = {"rel_type": "m.replace", "event_id": message}
        await self._put(chat, {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relates})

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:
        sending = self._connected.upload(io.BytesIO(data), "text/plain", name, filesize=len(data))
        uploaded = _good((await self._request(sending))[0], nio.UploadResponse)
        info = {"mimetype": "text/plain", "size": len(data)}
        await self._put(chat, {"msgtype": "m.file", "body": name, "url": uploaded.content_uri, "info": info}, key=key)

    async def _put(self, room: str, content: dict[str, Any], *, key: str = "", kind: str = "m.room.message") -> str:
        sending = self._connected.room_send(room, kind, content, tx_id=key or None)
        return str(_good(await self._request(sending), nio.RoomSendResponse).event_id)

    @property
    def _connected(self) -> nio.AsyncClient:
        if self._client is None:
            raise base.Unreachable("Matrix is not connected")
        return self._client

    async def _request(self, answer: Any) -> Any:
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                return await answer
        # The last two are raised when the connection is lost while it is being set up.
        except (aiohttp.ClientError, OSError, TimeoutError, RuntimeError, AttributeError) as error:
            raise base.Unreachable(f"the Matrix server cannot be reached: {type(error).__name__}") from None


def _relation(content: dict[str, Any]) -> dict[str, Any]:
    found = content.get("m.relates_to")
    return found if isinstance(found, dict) else {}


def _without_quote(content: dict[str, Any]) -> str:
    """The text of a message without the quote that some clients put above a reply."""
    text = str(content.get("body", ""))
    if "m.in_reply_to" not in _relation(content):
        return text
    lines = text.splitlines()
    while lines and lines[0].startswith("> "):
        lines.pop(0)
    return "\n".join(lines).strip()


def _good(answer: Any, kind: type[T]) -> T:
    """Raises ToolFailed for a refusal, Unreachable for a server error."""
    if isinstance(answer, kind):
        return answer
    status, message = getattr(answer, "status_code", ""), getattr(answer, "message", "")
    transport = getattr(answer, "transport_response", None)
    if status in ("M_LIMIT_EXCEEDED", "M_UNKNOWN", None, "") or getattr(transport, "status", 500) >= 500:
        raise base.Unreachable(f"the Matrix server answers {status or 'with something that is not Matrix'}")
    raise ToolFailed(f"the Matrix server answers {status}: {str(message)[:200]}")

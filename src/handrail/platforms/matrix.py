"""Matrix: messages to a room, and chats in rooms, where questions are answered by reactions. Encrypted rooms are refused:
nothing is sent there in the clear."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ..errors import CallTimeout, HandrailError, ToolFailed
from ..net.http_client import Reply, ask
from ..protocols import Decision
from ..types import JsonDict, Unavailable
from . import base

_CLIENT_API, _MEDIA_API = "/_matrix/client/v3", "/_matrix/media/v3"
# An event may have 64 KiB, in UTF-8 and as JSON.
_MAX_CHARS = 10_000
_POLL_MS = 25_000
# The state of all rooms, at the first request.
_MAX_SYNC_BYTES = 64 << 20
_NOTHING: dict[str, list[str]] = {"types": []}
_ENCRYPTED = "the Matrix room is encrypted, and messages would be sent in the clear; tell the user"


def _sync_filter(**room: Any) -> JsonDict:
    room = {"ephemeral": _NOTHING, "account_data": _NOTHING, **room}
    return {"presence": _NOTHING, "account_data": _NOTHING, "room": room}


_CHAT_FILTER = _sync_filter(
    state={"types": ["m.room.member", "m.room.encryption"]},
    timeline={
        "types": ["m.room.message", "m.reaction", "m.room.member", "m.room.encryption", "m.room.encrypted"],
        "limit": 100,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The agent's own account: its server, and the variable with its access token."""

    homeserver: str
    token_variable: str = "MATRIX_ACCESS_TOKEN"

    async def who_am_i(self) -> str:
        return str((await self.good("GET", "/account/whoami"))["user_id"])

    async def sync(self, only: JsonDict, since: str, *, full_state: bool = False) -> JsonDict:
        """What has happened since; without `since`, what there is."""
        wait = {"since": since, "timeout": str(_POLL_MS)} if since else {"timeout": "0"}
        params = {"filter": json.dumps(only), "full_state": str(full_state).lower(), **wait}
        return await self.good("GET", "/sync", seconds=_POLL_MS / 1000 + 30, max_bytes=_MAX_SYNC_BYTES, params=params)

    async def put(self, room: str, content: JsonDict, *, key: str = "", kind: str = "m.room.message") -> str:
        """Returns the event's id. The same key twice is one event."""
        path = f"/rooms/{quote(room, safe='')}/send/{kind}/{quote(key or uuid.uuid4().hex, safe='')}"
        return str((await self.good("PUT", path, json=content))["event_id"])

    async def send_file(self, room: str, file: base.Attachment, *, key: str = "") -> str:
        how: JsonDict = {"params": {"filename": file.name}, "headers": {"content-type": file.mime}}
        how |= {"api": _MEDIA_API, "seconds": base.UPLOAD_SECONDS, "content": file.data}
        uploaded = await self.good("POST", "/upload", **how)
        main = file.mime.partition("/")[0]
        kind = f"m.{main}" if main in ("image", "audio", "video") else "m.file"
        info = {"mimetype": file.mime, "size": len(file.data)}
        content = {"msgtype": kind, "body": file.name, "url": uploaded["content_uri"], "info": info}
        return await self.put(room, content, key=key)

    async def good(self, method: str, path: str, **content: Any) -> JsonDict:
        reply = await self.call(method, path, **content)
        answer = reply.json()
        if not reply.is_good or not isinstance(answer, dict):
            raise reply.failure("the Matrix server")
        return answer

    async def call(
        self, method: str, path: str, *, api: str = _CLIENT_API, headers: dict[str, str] | None = None, **content: Any
    ) -> Reply:
        authorized = {"authorization": f"Bearer {base.target_key(self.token_variable)}", **(headers or {})}
        url = f"{self.homeserver.rstrip('/')}{api}{path}"
        return await ask(method, url, what="the Matrix server", headers=authorized, **content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Settings):
    """`room` is an id (`!...`) or an alias (`#...`). `people` are the users whose answers count; if empty, everyone's do."""

    room: str
    people: tuple[str, ...] = ()

    takes_files = True

    def check(self) -> Unavailable | None:
        return base.http_unavailable(self.token_variable)

    async def send(self, message: base.OutgoingMessage) -> dict[str, Any]:
        room = await self._open_room()
        parts = base.split(message.full_text, _MAX_CHARS)
        events = [await self.put(room, _text(part)) for part in parts]
        events += [await self.send_file(room, each) for each in message.attachments]
        return {"room": room, "event_ids": events}

    async def ask(self, question: str, *, seconds: float) -> str | None:
        """The next text that one of the people writes after the question; None if nobody does in time."""
        room, me = await self._open_room(), await self.who_am_i()
        only = _sync_filter(rooms=[room], state=_NOTHING, timeline={"types": ["m.room.message"], "limit": 50})
        since = (await self.sync(only, ""))["next_batch"]
        await self.put(room, _text(question))
        try:
            async with asyncio.timeout(seconds):
                while True:
                    update = await self.sync(only, since)
                    since = update["next_batch"]
                    for event in _events(_joined(update).get(room, {}), "timeline"):
                        sender, content = event.get("sender"), _object(event, "content")
                        may_answer = sender != me and (not self.people or sender in self.people)
                        if may_answer and content.get("msgtype") == "m.text":
                            return _without_quote(content) or str(content.get("body", ""))
        except CallTimeout:  # the server is silent, not the user
            raise
        except TimeoutError:
            return None

    async def _open_room(self) -> str:
        """Join the room and return its id. Raises ToolFailed if it is encrypted or cannot be entered."""
        # Joining again changes nothing, and resolves an alias.
        room = str((await self.good("POST", f"/join/{quote(self.room, safe='')}", json={}))["room_id"])
        state = await self.call("GET", f"/rooms/{quote(room, safe='')}/state/m.room.encryption")
        if state.is_good:
            raise ToolFailed(_ENCRYPTED)
        if state.status != 404:
            raise state.failure("the Matrix server")
        return room


class Adapter:
    can_edit = True
    needs_reply = False
    # Below _MAX_CHARS, as an edit has its text twice.
    max_chars = 4_000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._id = ""
        self._members: dict[str, set[str]] = {}  # also those who are invited, by room
        self._encrypted_rooms: set[str] = set()
        self._warned_rooms: set[str] = set()
        self._signing: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        base.account_token(self._settings.token_variable)
        await base.load_sdk("Matrix", "httpx", extra="matrix")
        self._id = await base.reached(self._settings.who_am_i())

    async def disconnect(self) -> None:
        for signing in self._signing:
            signing.cancel()

    async def receive(self, cursor: str) -> AsyncIterator[base.Updates]:
        first = True
        while True:
            update = await base.reached(self._settings.sync(_CHAT_FILTER, cursor, full_state=first))
            for room in update.get("rooms", {}).get("invite", {}):
                with contextlib.suppress(ToolFailed):
                    await base.reached(self._settings.good("POST", f"/join/{quote(room, safe='')}", json={}))
            is_old = first and not cursor
            events: list[base.Message | base.ButtonPress] = []
            for room, joined in _joined(update).items():
                for event in _events(joined, "state", "timeline"):
                    self._note_state(room, event)
                new = () if is_old else _events(joined, "timeline")
                events += [each for event in new if (each := await self._event(room, event))]
            first, cursor = False, update["next_batch"]
            yield base.Updates(cursor, events)

    def _note_state(self, room: str, event: JsonDict) -> None:
        if event.get("type") == "m.room.encryption":
            self._encrypted_rooms.add(room)
        elif event.get("type") == "m.room.member":
            is_there = _object(event, "content").get("membership") in ("join", "invite")
            members = self._members.setdefault(room, set())
            (members.add if is_there else members.discard)(str(event.get("state_key")))

    async def _event(self, room: str, event: JsonDict) -> base.Message | base.ButtonPress | None:
        sender, kind, content = str(event.get("sender")), event.get("type"), _object(event, "content")
        if sender == self._id:
            return None
        relation = _object(content, "m.relates_to")
        if kind == "m.room.encrypted":
            await self._warn_encrypted(room)
        if kind == "m.reaction":
            decision = base.decision_of(str(relation.get("key", "")))
            return base.ButtonPress(room, sender, str(relation.get("event_id")), decision) if decision else None
        is_edit = relation.get("rel_type") == "m.replace"
        if kind != "m.room.message" or content.get("msgtype") != "m.text" or is_edit:
            return None
        text, is_direct = self._without_us(content), 0 < len(self._members.get(room, ())) <= 2
        named = _object(content, "m.mentions").get("user_ids")
        is_for_us = self._id in (named if isinstance(named, list) else str(content.get("body", "")))
        written = event.get("origin_server_ts", 0) / 1000
        reply_to = str(_object(relation, "m.in_reply_to").get("event_id", ""))
        return base.Message(room, sender, text, is_direct, is_for_us, written, reply_to)

    def _without_us(self, content: JsonDict) -> str:
        """The text without our name at its start, and without the quote of a reply."""
        text, name = _without_quote(content).strip(), self._id[1:].partition(":")[0]
        for each in (self._id, name, f"@{name}"):
            if text.lower().startswith(each.lower()) and not text[len(each) :][:1].isalnum():
                return text[len(each) :].lstrip(" :,")
        return text

    async def _warn_encrypted(self, room: str) -> None:
        if room not in self._warned_rooms:
            self._warned_rooms.add(room)
            text = "I cannot read encrypted rooms. Invite me to one without encryption, on a server that you trust."
            notice = {"msgtype": "m.notice", "body": text}
            with contextlib.suppress(ToolFailed):
                await base.reached(self._settings.put(room, notice, key=f"encrypted-{room}"))

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        message = await self._put(chat, _text(text), key=key)
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
        relates = {"rel_type": "m.replace", "event_id": message}
        await self._put(chat, {**_text(f"* {text}"), "m.new_content": _text(text), "m.relates_to": relates})

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:
        self._check_plain(chat)
        await base.reached(self._settings.send_file(chat, base.Attachment(name, data), key=key))

    async def _put(self, room: str, content: JsonDict, **more: str) -> str:
        self._check_plain(room)
        return await base.reached(self._settings.put(room, content, **more))

    def _check_plain(self, room: str) -> None:
        if room in self._encrypted_rooms:
            raise ToolFailed(_ENCRYPTED)


def _text(text: str) -> JsonDict:
    return {"msgtype": "m.text", "body": text}


def _joined(update: JsonDict) -> JsonDict:
    found: JsonDict = update.get("rooms", {}).get("join", {})
    return found


def _events(room: JsonDict, *parts: str) -> Iterator[JsonDict]:
    for part in parts:
        yield from room.get(part, {}).get("events", ())


def _object(container: JsonDict, name: str) -> JsonDict:
    """What others sent under this name; empty if that is no object."""
    found = container.get(name)
    return found if isinstance(found, dict) else {}


def _without_quote(content: JsonDict) -> str:
    """The text of a message without the quote that some clients put above a reply."""
    text = str(content.get("body", ""))
    if "m.in_reply_to" not in _object(content, "m.relates_to"):
        return text
    lines = text.splitlines()
    while lines and lines[0].startswith("> "):
        lines.pop(0)
    return "\n".join(lines).strip()

"""Matrix rooms. Questions are answered by reactions; an encrypted room is told that nothing is said there."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import HandrailError, ToolFailed
from ...protocols import Decision
from ..adapter import News, Pressed, Said, Unreachable, decision_of, sign_of
from ..requirements import library, token_of

if TYPE_CHECKING:
    import nio

T = TypeVar("T")

_POLL_MS = 25_000
_REQUEST_SECONDS = 30.0
_MAX_SECONDS = 90.0
_NOTHING: dict[str, list[str]] = {"types": []}
_WANTED = {
    "presence": _NOTHING,
    "account_data": _NOTHING,
    "room": {
        "ephemeral": _NOTHING,
        "account_data": _NOTHING,
        "state": {"types": ["m.room.member", "m.room.encryption", "m.room.create"]},
        "timeline": {
            "types": ["m.room.message", "m.reaction", "m.room.member", "m.room.encryption", "m.room.encrypted"],
            "limit": 100,
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """An account of its own for the agent: its server, and the variable with its access token."""

    homeserver: str
    token_variable: str = "MATRIX_ACCESS_TOKEN"


class Adapter:
    can_edit = True
    # The whole event may have 64 KiB, in UTF-8 and as JSON, and an edit has its text twice.
    max_chars = 4_000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: nio.AsyncClient | None = None
        self._told_encrypted: set[str] = set()
        self._signing: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        token = token_of(self._settings.token_variable)
        await library("Matrix", "nio", extra="matrix")
        import nio

        # What fails is told at once: whoever sends decides whether to try again.
        config = nio.AsyncClientConfig(
            max_timeouts=0, max_limit_exceeded=3, encryption_enabled=False, request_timeout=_REQUEST_SECONDS
        )
        self._client = nio.AsyncClient(self._settings.homeserver, config=config)
        self._client.access_token = token
        try:
            me = _good(await self._asked(self._client.whoami()), nio.WhoamiResponse)
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

    async def receive(self, place: str) -> AsyncIterator[News]:
        import nio

        client, first = self._here, True
        while True:
            waiting = client.sync(0 if first else _POLL_MS, _WANTED, since=place or None, full_state=first)
            told = _good(await self._asked(waiting), nio.SyncResponse)
            for room in told.rooms.invite:
                await self._asked(client.join(room))
            is_old = first and not place
            events: list[Said | Pressed] = []
            for room, news in told.rooms.join.items() if not is_old else ():
                events += [each for event in news.timeline.events if (each := await self._event(room, event))]
            first, place = False, told.next_batch
            yield News(place, events)

    async def _event(self, room: str, event: Any) -> Said | Pressed | None:
        import nio

        if event.sender == self._here.user_id:
            return None
        if isinstance(event, nio.MegolmEvent):
            await self._tell_encrypted(room)
        if isinstance(event, nio.ReactionEvent):
            decision = decision_of(event.key)
            return Pressed(room, event.sender, event.reacts_to, decision) if decision else None
        content = event.source.get("content", {})
        is_edit = _relation(content).get("rel_type") == "m.replace"
        if not isinstance(event, nio.RoomMessageText) or is_edit:
            return None
        known = self._here.rooms.get(room)
        is_direct = known is not None and known.member_count <= 2
        return Said(room, event.sender, self._without_us(content), is_direct, self._is_for_us(content))

    def _is_for_us(self, content: dict[str, Any]) -> bool:
        mentions = content.get("m.mentions")
        named = mentions.get("user_ids") if isinstance(mentions, dict) else None
        if isinstance(named, list):
            return self._here.user_id in named
        return self._here.user_id in str(content.get("body", ""))

    def _without_us(self, content: dict[str, Any]) -> str:
        """What was written, without our name at the beginning, and without what a reply quotes."""
        text = str(content.get("body", ""))
        if "m.in_reply_to" in _relation(content):
            lines = text.splitlines()
            while lines and lines[0].startswith("> "):
                lines.pop(0)
            text = "\n".join(lines)
        text, me = text.strip(), self._here.user_id
        for name in (me, me[1:].partition(":")[0], "@" + me[1:].partition(":")[0]):
            if text.lower().startswith(name.lower()) and not text[len(name) :][:1].isalnum():
                return text[len(name) :].lstrip(" :,")
        return text

    async def _tell_encrypted(self, room: str) -> None:
        if room not in self._told_encrypted:
            self._told_encrypted.add(room)
            text = "I cannot read encrypted rooms. Invite me to one without encryption, on a server that you trust."
            with contextlib.suppress(ToolFailed):
                await self._put(room, {"msgtype": "m.notice", "body": text}, key=f"encrypted-{room}")

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        message = await self._put(chat, {"msgtype": "m.text", "body": text}, key=key)
        if offers:
            # Meanwhile the message is known, and whoever is faster than the last sign is heard at once.
            signing = asyncio.create_task(self._sign(chat, message, offers, key=key))
            self._signing.add(signing)
            signing.add_done_callback(self._signing.discard)
        return message

    async def _sign(self, chat: str, message: str, offers: Sequence[Decision], *, key: str) -> None:
        """The words work too: a question is asked also when its signs could not be put there."""
        with contextlib.suppress(HandrailError):
            for decision in offers:
                shown = {"rel_type": "m.annotation", "event_id": message, "key": sign_of(decision)}
                await self._put(chat, {"m.relates_to": shown}, key=f"{key}-{decision.value}", kind="m.reaction")

    async def edit(self, chat: str, message: str, text: str) -> None:
        new = {"msgtype": "m.text", "body": text}
        relates = {"rel_type": "m.replace", "event_id": message}
        await self._put(chat, {**new, "body": f"* {text}", "m.new_content": new, "m.relates_to": relates})

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:
        import nio

        sending = self._here.upload(io.BytesIO(data), "text/plain", name, filesize=len(data))
        told = _good((await self._asked(sending))[0], nio.UploadResponse)
        info = {"mimetype": "text/plain", "size": len(data)}
        await self._put(chat, {"msgtype": "m.file", "body": name, "url": told.content_uri, "info": info}, key=key)

    async def _put(self, room: str, content: dict[str, Any], *, key: str = "", kind: str = "m.room.message") -> str:
        import nio

        sending = self._here.room_send(room, kind, content, tx_id=key or None)
        return str(_good(await self._asked(sending), nio.RoomSendResponse).event_id)

    @property
    def _here(self) -> nio.AsyncClient:
        if self._client is None:
            raise Unreachable("Matrix is not connected")
        return self._client

    async def _asked(self, asking: Any) -> Any:
        import aiohttp

        try:
            async with asyncio.timeout(_MAX_SECONDS):
                return await asking
        # The last two are what is raised when the connection goes while it is being taken.
        except (aiohttp.ClientError, OSError, TimeoutError, RuntimeError, AttributeError) as error:
            raise Unreachable(f"the Matrix server cannot be reached: {type(error).__name__}") from None


def _relation(content: dict[str, Any]) -> dict[str, Any]:
    found = content.get("m.relates_to")
    return found if isinstance(found, dict) else {}


def _good(told: Any, kind: type[T]) -> T:
    """Raises ToolFailed for a refusal, and Unreachable for a server that has trouble of its own."""
    if isinstance(told, kind):
        return told
    status, message = getattr(told, "status_code", ""), getattr(told, "message", "")
    transport = getattr(told, "transport_response", None)
    if status in ("M_LIMIT_EXCEEDED", "M_UNKNOWN", None, "") or getattr(transport, "status", 500) >= 500:
        raise Unreachable(f"the Matrix server answers {status or 'nothing that is understood'}")
    raise ToolFailed(f"the Matrix server answers {status}: {str(message)[:200]}")

"""Slack channels, by an app in Socket Mode: Slack is called from here, and nothing listens for it. Questions have buttons."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....protocols import Decision
from ..base import News, Pressed, Said, Unreachable, sign_of
from ..sockets import opened
from ..wire import Wire, token_of

_SECTION_CHARS = 3_000
_DECISIONS = {decision.value: decision for decision in Decision}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Two tokens: the app's (xapp-…), which opens the connection, and the bot's (xoxb-…), which writes."""

    app_token_variable: str = "SLACK_APP_TOKEN"
    token_variable: str = "SLACK_BOT_TOKEN"
    server: str = "https://slack.com/api"


class Adapter:
    can_edit = True
    max_chars = 8_000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._wire: Wire | None = None
        self._app_token = ""
        self._id = ""

    async def connect(self) -> None:
        self._app_token = token_of(self._settings.app_token_variable)
        token = token_of(self._settings.token_variable)
        headers = {"authorization": f"Bearer {token}"}
        self._wire = Wire("Slack", f"{self._settings.server.rstrip('/')}/", key=token, headers=headers)
        self._id = str((await self._call("auth.test", again=True))["user_id"])

    async def disconnect(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    async def receive(self, place: str) -> AsyncIterator[News]:  # noqa: ARG002  Slack keeps no place
        headers = {"authorization": f"Bearer {self._app_token}"}
        told = await self._call("apps.connections.open", again=True, headers=headers)
        async with opened("Slack", told["url"], extra="slack") as socket:
            yield News("", ())
            while True:
                envelope = await socket.receive()
                if envelope.get("type") == "disconnect":
                    raise Unreachable("Slack wants us to connect anew")
                if "envelope_id" in envelope:
                    # What is not acknowledged within three seconds comes again.
                    await socket.send({"envelope_id": envelope["envelope_id"]})
                event = self._event(str(envelope.get("type")), envelope.get("payload") or {})
                yield News("", (event,) if event else ())

    def _event(self, kind: str, payload: dict[str, Any]) -> Said | Pressed | None:
        if kind == "events_api":
            return self._said(payload.get("event") or {})
        if kind == "slash_commands":
            chat, text = str(payload["channel_id"]), f"{payload['command']} {payload.get('text', '')}"
            return Said(chat, str(payload["user_id"]), text.strip(), chat.startswith("D"), is_for_us=True)
        if kind == "interactive" and payload.get("type") == "block_actions":
            decision = _DECISIONS.get(str((payload.get("actions") or [{}])[0].get("value")))
            if decision is not None:
                chat, message = str(payload["channel"]["id"]), str(payload["message"]["ts"])
                return Pressed(chat, str(payload["user"]["id"]), message, decision)
        return None

    def _said(self, event: dict[str, Any]) -> Said | None:
        """A message to us alone, or a mention; a channel tells of a mention in both ways, and one counts."""
        is_direct = event.get("type") == "message" and event.get("channel_type") == "im"
        is_for_us = event.get("type") == "app_mention"
        if not (is_direct or is_for_us) or event.get("bot_id") or event.get("subtype") or not event.get("user"):
            return None
        text = re.sub(rf"^\s*<@{re.escape(self._id)}(\|[^>]*)?>[\s:,]*", "", str(event.get("text", "")))
        return Said(str(event["channel"]), str(event["user"]), html.unescape(text), is_direct, is_for_us)

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  Slack knows none
        told = await self._call("chat.postMessage", json={"channel": chat, **_body(text, offers)})
        return str(told["ts"])

    async def edit(self, chat: str, message: str, text: str) -> None:
        await self._call("chat.update", again=True, json={"channel": chat, "ts": message, **_body(text, ())})

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002
        place = await self._call("files.getUploadURLExternal", again=True, data={"filename": name, "length": len(data)})
        if self._wire is None:
            raise Unreachable("Slack is not connected")
        await self._wire.call("POST", place["upload_url"], again=True, content=data)
        done = {"files": [{"id": place["file_id"], "title": name}], "channel_id": chat}
        await self._call("files.completeUploadExternal", json=done)

    async def _call(self, method: str, **content: Any) -> Any:
        if self._wire is None:
            raise Unreachable("Slack is not connected")
        return await self._wire.call("POST", method, **content)


def _body(text: str, offers: Sequence[Decision]) -> dict[str, Any]:
    """Plain text: nothing in it calls a whole channel, or hides an address behind words."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if not offers:
        return {"text": escaped, "mrkdwn": False, "blocks": []}
    parts = [text[start : start + _SECTION_CHARS] for start in range(0, len(text), _SECTION_CHARS)]
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "plain_text", "text": part}} for part in parts]
    buttons = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": f"{sign_of(each)} {each.value}", "emoji": True},
            "value": each.value,
            "action_id": each.value,
        }
        for each in offers
    ]
    return {"text": escaped, "mrkdwn": False, "blocks": [*blocks, {"type": "actions", "elements": buttons}]}

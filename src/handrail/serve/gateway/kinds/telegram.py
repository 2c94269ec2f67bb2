"""Telegram chats, by a bot that asks for what is new. Questions have buttons."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import ToolFailed
from ....protocols import Decision
from ..base import News, Pressed, Said, Unreachable, sign_of
from ..wire import Wire, token_of

log = logging.getLogger(__name__)

_POLL_SECONDS = 25
_DECISIONS = {decision.value: decision for decision in Decision}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`server` is for a Bot API server of one's own."""

    token_variable: str = "TELEGRAM_BOT_TOKEN"
    server: str = "https://api.telegram.org"


class Adapter:
    can_edit = True
    # 4096, of which what is not in the first plane of Unicode takes two.
    max_chars = 3500

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._wire: Wire | None = None
        self._id, self._name = 0, ""

    async def connect(self) -> None:
        token = token_of(self._settings.token_variable)
        self._wire = Wire("Telegram", f"{self._settings.server.rstrip('/')}/bot{token}/", key=token)
        me = await self._call("getMe", again=True)
        self._id, self._name = int(me["id"]), str(me.get("username", ""))

    async def disconnect(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    async def receive(self, place: str) -> AsyncIterator[News]:
        wanted = ["message", "callback_query"]
        if not place:
            # -1 is the last one there is: what came before we did is not for us.
            last = await self._call("getUpdates", again=True, json={"offset": -1, "timeout": 0})
            place = str(last[-1]["update_id"] + 1) if last else "0"
            yield News(place, ())
        while True:
            body = {"offset": int(place), "timeout": _POLL_SECONDS, "allowed_updates": wanted}
            updates = await self._call("getUpdates", again=True, json=body, timeout=_POLL_SECONDS + 15)
            events = [each for update in updates if (each := await self._understood(update))]
            if updates:
                place = str(updates[-1]["update_id"] + 1)
            yield News(place, events)

    async def _understood(self, update: dict[str, Any]) -> Said | Pressed | None:
        try:
            return await self._event(update)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # It must not come again and again, and keep back those behind it.
            log.info("an update of Telegram is not understood: %s", type(error).__name__)
            return None

    async def _event(self, update: dict[str, Any]) -> Said | Pressed | None:
        if tapped := update.get("callback_query"):
            # Without this the button shows for a minute that something goes on.
            with contextlib.suppress(ToolFailed, Unreachable):
                await self._call("answerCallbackQuery", again=True, json={"callback_query_id": tapped["id"]})
            message, decision = tapped.get("message"), _DECISIONS.get(str(tapped.get("data")))
            if not message or decision is None:
                return None
            return Pressed(str(message["chat"]["id"]), str(tapped["from"]["id"]), str(message["message_id"]), decision)
        message = update.get("message", {})
        text, sender = message.get("text"), message.get("from", {})
        if not text or sender.get("is_bot"):
            return None
        chat, name = message["chat"], f"@{self._name}"
        replied = message.get("reply_to_message", {}).get("from", {}).get("id") == self._id
        is_for_us = replied or name.lower() in text.lower()
        if text.lower().startswith(name.lower()):
            text = text[len(name) :].lstrip(" :,")
        return Said(str(chat["id"]), str(sender.get("id")), text, chat.get("type") == "private", is_for_us)

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  Telegram knows none
        told = await self._call("sendMessage", json={"chat_id": chat, "text": text, **_buttons(offers)})
        return str(told["message_id"])

    async def edit(self, chat: str, message: str, text: str) -> None:
        body = {"chat_id": chat, "message_id": int(message), "text": text}
        try:
            await self._call("editMessageText", again=True, json=body)
        except ToolFailed as error:
            if "not modified" not in str(error):
                raise

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002
        await self._call("sendDocument", data={"chat_id": chat}, files={"document": (name, data, "text/plain")})

    async def _call(self, method: str, **content: Any) -> Any:
        if self._wire is None:
            raise Unreachable("Telegram is not connected")
        return (await self._wire.call("POST", method, **content))["result"]


def _buttons(offers: Sequence[Decision]) -> dict[str, Any]:
    """No parse mode is ever set: what an agent writes is text, not markup that may fail or mislead."""
    if not offers:
        return {}
    row = [{"text": f"{sign_of(each)} {each.value}", "callback_data": each.value} for each in offers]
    return {"reply_markup": {"inline_keyboard": [row]}}

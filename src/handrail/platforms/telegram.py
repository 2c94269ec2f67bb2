"""Telegram, by a bot: messages to a chat, and chats by long polling. Questions have buttons. No parse mode is ever set: what an
agent writes is text, not markup that may fail or mislead."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigError, ToolError, ToolFailed
from ..net.http_client import ask
from ..protocols import Decision
from ..types import JsonDict, Unavailable
from . import base

_MAX_CHARS = 4096
_POLL_SECONDS = 25
_MAX_REPLY_BYTES = 16 << 20  # a hundred messages that waited
_EVENTS = ["message", "callback_query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`server` is for your own Bot API server."""

    token_variable: str = "TELEGRAM_BOT_TOKEN"
    server: str = "https://api.telegram.org"

    async def call(self, method: str, *, seconds: float = 30.0, files: Any = None, **values: Any) -> Any:
        url = f"{self.server.rstrip('/')}/bot{base.target_key(self.token_variable)}/{method}"
        content = {"json": values} if files is None else {"data": values, "files": files}
        reply = await ask("POST", url, what="Telegram", seconds=seconds, max_bytes=_MAX_REPLY_BYTES, **content)
        answer = reply.json()
        if not reply.is_good or not isinstance(answer, dict) or not answer.get("ok"):
            raise reply.failure("Telegram")
        return answer["result"]

    async def send_file(self, chat: str, file: base.Attachment) -> Any:
        files = {"document": (file.name, file.data, file.mime)}
        return await self.call("sendDocument", seconds=base.UPLOAD_SECONDS, files=files, chat_id=chat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Settings):
    """`chat` is the chat's number, or `@name` of a channel."""

    chat: str

    takes_files = True

    def check(self) -> Unavailable | None:
        return base.http_unavailable(self.token_variable)

    async def send(self, message: base.OutgoingMessage) -> dict[str, Any]:
        parts = base.split(message.full_text, _MAX_CHARS)
        sent = [await self.call("sendMessage", chat_id=self.chat, text=part) for part in parts]
        sent += [await self.send_file(self.chat, each) for each in message.attachments]
        return {"parts": len(parts), "message_ids": [each.get("message_id") for each in sent]}


class Adapter:
    can_edit = True
    needs_reply = False
    # Below _MAX_CHARS, as characters outside the first plane of Unicode count twice.
    max_chars = 3500

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._id, self._name = 0, ""

    async def connect(self) -> None:
        base.account_token(self._settings.token_variable)
        await base.load_sdk("Telegram", "httpx", extra="telegram")
        try:
            me = await self._repeatable("getMe")
        except ToolFailed as error:
            if error.details.get("status") in (401, 404):  # the second for one that no bot can have
                unknown = f"Telegram does not know the token in {self._settings.token_variable}"
                raise ConfigError(unknown) from None
            raise
        self._id, self._name = me["id"], f"@{me['username']}".lower()

    async def disconnect(self) -> None:
        """Nothing stays open between two requests."""

    async def receive(self, cursor: str) -> AsyncIterator[base.Updates]:
        if not cursor:
            # -1 is the latest update: what was sent before we came is not for us.
            last = await self._repeatable("getUpdates", offset=-1, timeout=0)
            cursor = str(last[-1]["update_id"] + 1) if last else "0"
            yield base.Updates(cursor, ())
        while True:
            wait = {"timeout": _POLL_SECONDS, "seconds": _POLL_SECONDS + 30.0, "allowed_updates": _EVENTS}
            updates = await self._repeatable("getUpdates", offset=int(cursor), **wait)
            events = [each for update in updates if (each := await self._event(update))]
            if updates:
                cursor = str(updates[-1]["update_id"] + 1)
            yield base.Updates(cursor, events)

    async def _event(self, update: JsonDict) -> base.Message | base.ButtonPress | None:
        if press := update.get("callback_query"):
            # Without this the button shows a spinner for a minute.
            with contextlib.suppress(ToolError, base.Unreachable):
                await self._repeatable("answerCallbackQuery", callback_query_id=press["id"])
            pressed, decision = press.get("message"), base.DECISIONS.get(press.get("data", ""))
            if pressed is None or decision is None:
                return None
            chat, message = str(pressed["chat"]["id"]), str(pressed["message_id"])
            return base.ButtonPress(chat, str(press["from"]["id"]), message, decision)
        received: JsonDict = update.get("message") or {}
        text, writer, quoted = received.get("text"), received.get("from"), received.get("reply_to_message") or {}
        if not text or writer is None or writer.get("is_bot"):
            return None
        is_for_us = (quoted.get("from") or {}).get("id") == self._id or self._name in text.lower()
        if text.lower().startswith(self._name):
            text = text[len(self._name) :].lstrip(" :,")
        chat, is_direct = str(received["chat"]["id"]), received["chat"]["type"] == "private"
        written, reply_to = float(received["date"]), str(quoted.get("message_id", ""))
        return base.Message(chat, str(writer["id"]), text, is_direct, is_for_us, written, reply_to)

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  Telegram has no such keys
        row = [{"text": f"{base.sign_of(each)} {each.value}", "callback_data": each.value} for each in offers]
        buttons: JsonDict = {"reply_markup": {"inline_keyboard": [row]}} if row else {}
        sending = self._settings.call("sendMessage", chat_id=chat, text=text, **buttons)
        return str((await base.reached(sending, repeatable=False))["message_id"])

    async def edit(self, chat: str, message: str, text: str) -> None:
        try:
            await self._repeatable("editMessageText", chat_id=chat, message_id=int(message), text=text)
        except ToolFailed as error:
            if "not modified" not in str(error):
                raise

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002  Telegram has no such keys
        await base.reached(self._settings.send_file(chat, base.Attachment(name, data)), repeatable=False)

    async def _repeatable(self, method: str, **values: Any) -> Any:
        return await base.reached(self._settings.call(method, **values))

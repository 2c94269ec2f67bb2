"""Telegram, by a bot: messages to a chat, and chats by long polling. Questions have buttons."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.lazy_module import lazy_import
from ..errors import ConfigError, ToolFailed
from ..net.http_client import ask
from ..protocols import Decision
from ..types import Unavailable
from . import base

if TYPE_CHECKING:
    import httpx
    import telegram
else:
    httpx, telegram = lazy_import("httpx"), lazy_import("telegram")

T = TypeVar("T")

_SERVER = "https://api.telegram.org"
_TOKEN_VARIABLE = "TELEGRAM_BOT_TOKEN"
_MAX_CHARS = 4096
_POLL_SECONDS = 25
_SECONDS = 30.0
_ATTEMPTS = 3
_MAX_WAIT_SECONDS = 30.0


def _base_url(server: str) -> str:
    return f"{server.rstrip('/')}/bot"


# No parse mode is ever set: what an agent writes is text, not markup that may fail or mislead.


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`chat` is the chat's number, or `@name` of a channel. `server` is for your own Bot API server."""

    chat: str
    token_variable: str = _TOKEN_VARIABLE
    server: str = _SERVER

    takes_files = True

    def check(self) -> Unavailable | None:
        return base.http_unavailable(self.token_variable)

    async def send(self, message: base.OutgoingMessage) -> dict[str, Any]:
        parts = base.split(message.full_text, _MAX_CHARS)
        ids = [await self._call("sendMessage", json={"chat_id": self.chat, "text": part}) for part in parts]
        for each in message.attachments:
            files = {"document": (each.name, each.data, each.mime)}
            sent = self._call("sendDocument", seconds=base.UPLOAD_SECONDS, data={"chat_id": self.chat}, files=files)
            ids.append(await sent)
        return {"parts": len(parts), "message_ids": ids}

    async def _call(self, method: str, **content: Any) -> Any:
        url = f"{_base_url(self.server)}{base.target_key(self.token_variable)}/{method}"
        reply = await ask("POST", url, what="Telegram", **content)
        answer = reply.json()
        if not reply.is_good or not isinstance(answer, dict) or not answer.get("ok"):
            raise reply.failure("Telegram")
        return answer["result"].get("message_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`server` is for your own Bot API server."""

    token_variable: str = _TOKEN_VARIABLE
    server: str = _SERVER


class Adapter:
    can_edit = True
    needs_reply = False
    # Below _MAX_CHARS, as characters outside the first plane of Unicode count twice.
    max_chars = 3500

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connected: telegram.Bot | None = None
        self._request: telegram.request.HTTPXRequest | None = None

    @property
    def _bot(self) -> telegram.Bot:
        if self._connected is None:
            raise base.Unreachable("Telegram is not connected")
        return self._connected

    async def connect(self) -> None:
        token = base.account_token(self._settings.token_variable)
        await base.load_sdk("Telegram", "telegram", extra="telegram")
        # It logs every address, and each contains the token.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        request = self._request = telegram.request.HTTPXRequest(
            connection_pool_size=16, connect_timeout=_SECONDS, read_timeout=_SECONDS
        )
        server = _base_url(self._settings.server)
        bot = telegram.Bot(token, base_url=server, request=request, get_updates_request=request)
        try:
            await _request(bot.initialize, repeatable=True)
        except telegram.error.InvalidToken:
            raise ConfigError(f"Telegram does not know the token in {self._settings.token_variable}") from None
        self._connected = bot

    async def disconnect(self) -> None:
        self._connected = None
        if self._request is not None:
            await self._request.shutdown()

    async def receive(self, cursor: str) -> AsyncIterator[base.Updates]:
        bot = self._bot
        if not cursor:
            # -1 is the latest update: what was sent before we came is not for us.
            last = await _request(lambda: bot.get_updates(offset=-1, timeout=0), repeatable=True)
            cursor = str(last[-1].update_id + 1) if last else "0"
            yield base.Updates(cursor, ())
        while True:
            updates = await _request(
                lambda cursor=cursor: bot.get_updates(  # type: ignore[misc]
                    offset=int(cursor), timeout=_POLL_SECONDS, allowed_updates=["message", "callback_query"]
                ),
                repeatable=True,
            )
            events = [each for update in updates if (each := await self._event(update))]
            if updates:
                cursor = str(updates[-1].update_id + 1)
            yield base.Updates(cursor, events)

    async def _event(self, update: telegram.Update) -> base.Message | base.ButtonPress | None:
        if press := update.callback_query:
            # Without this the button shows a spinner for a minute.
            with contextlib.suppress(ToolFailed, base.Unreachable):
                await _request(press.answer, repeatable=True)
            decision = base.DECISIONS.get(press.data or "")
            if press.message is None or decision is None:
                return None
            chat, message = str(press.message.chat.id), str(press.message.message_id)
            return base.ButtonPress(chat, str(press.from_user.id), message, decision)
        received = update.message
        if received is None or not received.text or received.from_user is None or received.from_user.is_bot:
            return None
        bot, text = self._bot, received.text
        name, replied = f"@{bot.username}", received.reply_to_message and received.reply_to_message.from_user
        is_for_us = bool(replied and replied.id == bot.id) or name.lower() in text.lower()
        if text.lower().startswith(name.lower()):
            text = text[len(name) :].lstrip(" :,")
        is_direct = received.chat.type == "private"
        return base.Message(
            str(received.chat.id),
            str(received.from_user.id),
            text,
            is_direct,
            is_for_us,
            received.date.timestamp(),
            str(received.reply_to_message.message_id) if received.reply_to_message else "",
        )

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  Telegram has no such keys
        sent = await _request(lambda: self._bot.send_message(int(chat), text, reply_markup=_buttons(offers)))
        return str(sent.message_id)

    async def edit(self, chat: str, message: str, text: str) -> None:
        try:
            await _request(lambda: self._bot.edit_message_text(text, int(chat), int(message)), repeatable=True)
        except ToolFailed as error:
            if "not modified" not in str(error):
                raise

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002  Telegram has no such keys
        await _request(lambda: self._bot.send_document(int(chat), data, filename=name))


async def _request(send: Callable[[], Awaitable[T]], *, repeatable: bool = False) -> T:
    """Telegram's answer. `repeatable`: sending twice is harmless, so a lost answer is Unreachable too."""
    errors = telegram.error
    for _ in range(_ATTEMPTS):
        try:
            return await send()
        except errors.RetryAfter as error:
            wait = error.retry_after
            await asyncio.sleep(min(wait if isinstance(wait, int) else wait.total_seconds(), _MAX_WAIT_SECONDS))
        except errors.InvalidToken:
            raise
        except errors.BadRequest as error:
            raise ToolFailed(f"Telegram refuses it: {error.message}") from None
        except errors.NetworkError as error:
            if repeatable or _never_arrived(error):
                raise base.Unreachable(f"Telegram cannot be reached: {error.message}") from None
            raise ToolFailed(f"Telegram: the answer was lost ({error.message}); it may have arrived") from None
        except errors.TelegramError as error:
            raise ToolFailed(f"Telegram refuses it: {error.message}") from None
    raise base.Unreachable("Telegram is rate limiting us")


def _never_arrived(error: telegram.error.NetworkError) -> bool:
    """There was no connection, or the server itself reported the failure."""
    cause = error.__cause__
    return cause is None or isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _buttons(offers: Sequence[Decision]) -> telegram.InlineKeyboardMarkup | None:
    row = [
        telegram.InlineKeyboardButton(f"{base.sign_of(each)} {each.value}", callback_data=each.value) for each in offers
    ]
    return telegram.InlineKeyboardMarkup([row]) if row else None

"""Telegram chats, by a bot that asks for what is new. Questions have buttons."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ...errors import ConfigError, ToolFailed
from ...protocols import Decision
from ..adapter import News, Pressed, Said, Unreachable, sign_of
from ..requirements import library, token_of

if TYPE_CHECKING:
    import telegram
    from telegram.request import HTTPXRequest

T = TypeVar("T")

_POLL_SECONDS = 25
_SECONDS = 30.0
_ATTEMPTS = 3
_MAX_WAIT_SECONDS = 30.0
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
        self._connected: telegram.Bot | None = None
        self._request: HTTPXRequest | None = None

    @property
    def _bot(self) -> telegram.Bot:
        if self._connected is None:
            raise Unreachable("Telegram is not connected")
        return self._connected

    async def connect(self) -> None:
        token = token_of(self._settings.token_variable)
        await library("Telegram", "telegram", extra="telegram")
        import telegram
        from telegram.request import HTTPXRequest

        # It writes every address down, and the token is in each.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        request = HTTPXRequest(connection_pool_size=16, connect_timeout=_SECONDS, read_timeout=_SECONDS)
        self._request = request
        server = f"{self._settings.server.rstrip('/')}/bot"
        bot = telegram.Bot(token, base_url=server, request=request, get_updates_request=request)
        try:
            await _asked(bot.initialize, again=True)
        except telegram.error.InvalidToken:
            raise ConfigError(f"Telegram does not know the token in {self._settings.token_variable}") from None
        self._connected = bot

    async def disconnect(self) -> None:
        self._connected = None
        if self._request is not None:
            await self._request.shutdown()

    async def receive(self, place: str) -> AsyncIterator[News]:
        bot = self._bot
        if not place:
            # -1 is the last one there is: what came before we did is not for us.
            last = await _asked(lambda: bot.get_updates(offset=-1, timeout=0), again=True)
            place = str(last[-1].update_id + 1) if last else "0"
            yield News(place, ())
        while True:
            updates = await _asked(
                lambda place=place: bot.get_updates(  # type: ignore[misc]
                    offset=int(place), timeout=_POLL_SECONDS, allowed_updates=["message", "callback_query"]
                ),
                again=True,
            )
            events = [each for update in updates if (each := await self._event(update))]
            if updates:
                place = str(updates[-1].update_id + 1)
            yield News(place, events)

    async def _event(self, update: telegram.Update) -> Said | Pressed | None:
        if tapped := update.callback_query:
            # Without this the button shows for a minute that something goes on.
            with contextlib.suppress(ToolFailed, Unreachable):
                await _asked(tapped.answer, again=True)
            decision = _DECISIONS.get(tapped.data or "")
            if tapped.message is None or decision is None:
                return None
            message = tapped.message
            return Pressed(str(message.chat.id), str(tapped.from_user.id), str(message.message_id), decision)
        said = update.message
        if said is None or not said.text or said.from_user is None or said.from_user.is_bot:
            return None
        bot, text = self._bot, said.text
        name, replied = f"@{bot.username}", said.reply_to_message and said.reply_to_message.from_user
        is_for_us = bool(replied and replied.id == bot.id) or name.lower() in text.lower()
        if text.lower().startswith(name.lower()):
            text = text[len(name) :].lstrip(" :,")
        return Said(str(said.chat.id), str(said.from_user.id), text, said.chat.type == "private", is_for_us)

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  Telegram knows none
        sent = await _asked(lambda: self._bot.send_message(int(chat), text, reply_markup=_buttons(offers)))
        return str(sent.message_id)

    async def edit(self, chat: str, message: str, text: str) -> None:
        try:
            await _asked(lambda: self._bot.edit_message_text(text, int(chat), int(message)), again=True)
        except ToolFailed as error:
            if "not modified" not in str(error):
                raise

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002
        await _asked(lambda: self._bot.send_document(int(chat), data, filename=name))


async def _asked(ask: Callable[[], Awaitable[T]], *, again: bool = False) -> T:
    """What Telegram answers. `again`: asking twice does no harm, so that a lost answer is Unreachable too."""
    from telegram import error as errors

    for _ in range(_ATTEMPTS):
        try:
            return await ask()
        except errors.RetryAfter as error:
            wait = error.retry_after
            await asyncio.sleep(min(wait if isinstance(wait, int) else wait.total_seconds(), _MAX_WAIT_SECONDS))
        except errors.InvalidToken:
            raise
        except errors.BadRequest as error:
            raise ToolFailed(f"Telegram refuses it: {error.message}") from None
        except errors.NetworkError as error:
            if again or _never_arrived(error):
                raise Unreachable(f"Telegram cannot be reached: {error.message}") from None
            raise ToolFailed(f"Telegram: the answer was lost ({error.message}); it may have arrived") from None
        except errors.TelegramError as error:
            raise ToolFailed(f"Telegram refuses it: {error.message}") from None
    raise Unreachable("Telegram wants us to wait")


def _never_arrived(error: telegram.error.NetworkError) -> bool:
    """There was no connection, or the server said itself that it cannot."""
    import httpx

    cause = error.__cause__
    return cause is None or isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _buttons(offers: Sequence[Decision]) -> telegram.InlineKeyboardMarkup | None:
    """No parse mode is ever set: what an agent writes is text, not markup that may fail or mislead."""
    from telegram import InlineKeyboardButton, InlineKeyboardMarkup

    row = [InlineKeyboardButton(f"{sign_of(each)} {each.value}", callback_data=each.value) for each in offers]
    return InlineKeyboardMarkup([row]) if row else None

"""Discord: messages by a channel's webhook, and chats by a bot on Discord's gateway. Questions have buttons."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.lazy_module import lazy_import
from ..errors import ConfigError, ToolFailed
from ..net.http_client import ask
from ..protocols import Decision
from ..types import Unavailable
from . import base

if TYPE_CHECKING:
    import aiohttp
    import discord
    import yarl
else:
    aiohttp, discord, yarl = map(lazy_import, ("aiohttp", "discord", "yarl"))

T = TypeVar("T")

_SERVER = "https://discord.com/api/v10"
_MAX_CHARS = 2000
_NONCE_CHARS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The webhook's address is a key, so it is read from a variable."""

    url_variable: str = "DISCORD_WEBHOOK_URL"

    takes_files = True

    def check(self) -> Unavailable | None:
        return base.http_unavailable(self.url_variable)

    async def send(self, message: base.OutgoingMessage) -> dict[str, Any]:
        parts = base.split(message.full_text, _MAX_CHARS)
        ids = []
        for number, part in enumerate(parts, 1):
            # An agent's text must not ping everyone.
            body = {"content": part, "allowed_mentions": {"parse": []}}
            content: dict[str, Any] = {"json": body}
            if message.attachments and number == len(parts):
                files = {f"files[{n}]": (each.name, each.data, each.mime) for n, each in enumerate(message.attachments)}
                content = {"data": {"payload_json": json.dumps(body)}, "files": files, "seconds": base.UPLOAD_SECONDS}
            url = base.target_key(self.url_variable)
            reply = await ask("POST", url, what="Discord", params={"wait": "true"}, **content)
            if not reply.is_good:
                raise reply.failure("Discord")
            ids.append((reply.json() or {}).get("id"))
        return {"parts": len(parts), "message_ids": ids}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The bot needs the message content intent, which is switched on in Discord's developer portal."""

    token_variable: str = "DISCORD_BOT_TOKEN"
    server: str = _SERVER


class Adapter:
    can_edit = True
    needs_reply = False
    max_chars = _MAX_CHARS

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connected: discord.Client | None = None
        self._events: asyncio.Queue[base.Message | base.ButtonPress] = asyncio.Queue()

    @property
    def _client(self) -> discord.Client:
        if self._connected is None:
            raise base.Unreachable("Discord is not connected")
        return self._connected

    async def connect(self) -> None:
        token = base.account_token(self._settings.token_variable)
        await base.load_sdk("Discord", "discord", extra="discord")
        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # no voice is used
        client = discord.Client(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True),
            # An agent's text must not ping everyone.
            allowed_mentions=discord.AllowedMentions.none(),
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            max_messages=None,
        )
        client.event(self.on_message)
        client.event(self.on_interaction)
        self._connected = client
        try:
            if self._settings.server != _SERVER:
                discord.http.Route.BASE = self._settings.server.rstrip("/")
            await _request(client.login(token))
            if self._settings.server != _SERVER:
                # The library has the address of Discord's own gateway built in.
                answer = await _request(client.http.request(discord.http.Route("GET", "/gateway/bot")))
                discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(answer["url"])
        except discord.LoginFailure:
            raise ConfigError(f"Discord does not know the token in {self._settings.token_variable}") from None

    async def disconnect(self) -> None:
        client, self._connected = self._connected, None
        if client is not None:
            await client.close()

    async def receive(self, cursor: str) -> AsyncIterator[base.Updates]:  # noqa: ARG002  the library resumes by itself
        # It reconnects by itself and fetches what it missed.
        running = asyncio.create_task(self._client.connect())
        try:
            yield base.Updates("", ())
            while True:
                event = asyncio.create_task(self._events.get())
                await asyncio.wait({running, event}, return_when=asyncio.FIRST_COMPLETED)
                if not event.done():
                    event.cancel()
                    break
                yield base.Updates("", (event.result(),))
            await _request(running)
            raise base.Unreachable("Discord closed the connection")
        except discord.PrivilegedIntentsRequired:
            raise ConfigError("switch on the message content intent of the bot in Discord's developer portal") from None
        finally:
            running.cancel()
            await asyncio.wait({running})

    async def on_message(self, message: discord.Message) -> None:
        if message.author.bot or message.webhook_id:
            return
        me = self._client.user
        is_for_us = me is not None and any(each.id == me.id for each in message.mentions)
        text = message.content
        for name in (f"<@{me.id}>", f"<@!{me.id}>") if me else ():
            text = text.replace(name, "")
        is_direct = isinstance(message.channel, discord.DMChannel)
        chat, user = str(message.channel.id), str(message.author.id)
        written, quoted = message.created_at.timestamp(), message.reference and message.reference.message_id
        reply_to = str(quoted) if quoted else ""
        self._events.put_nowait(base.Message(chat, user, text.strip(" :,"), is_direct, is_for_us, written, reply_to))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        if interaction.type is not discord.InteractionType.component or interaction.message is None:
            return
        # Without this Discord shows the user that the interaction failed.
        with contextlib.suppress(discord.DiscordException, OSError):
            await interaction.response.defer()
        data: Any = interaction.data or {}
        if (decision := base.DECISIONS.get(str(data.get("custom_id")))) is not None:
            chat, message = str(interaction.channel_id), str(interaction.message.id)
            self._events.put_nowait(base.ButtonPress(chat, str(interaction.user.id), message, decision))

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        channel = self._client.get_partial_messageable(int(chat))
        return str((await _request(channel.send(text, nonce=_nonce(key), **_view(offers)))).id)

    async def edit(self, chat: str, message: str, text: str) -> None:
        sent = self._client.get_partial_messageable(int(chat)).get_partial_message(int(message))
        await _request(sent.edit(content=text, view=None))

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:
        channel = self._client.get_partial_messageable(int(chat))
        await _request(channel.send(file=discord.File(io.BytesIO(data), name), nonce=_nonce(key)))


async def _request(answer: Awaitable[T]) -> T:
    """Discord's answer. Every request may be repeated: a message has its nonce, and an edit is idempotent."""
    try:
        return await answer
    except (discord.LoginFailure, discord.PrivilegedIntentsRequired):
        raise
    except (discord.DiscordServerError, discord.GatewayNotFound, aiohttp.ClientError, OSError, TimeoutError) as error:
        raise base.Unreachable(f"Discord cannot be reached: {type(error).__name__}") from None
    except discord.ConnectionClosed as error:
        raise base.Unreachable(f"Discord closed the connection ({error.code})") from None
    except discord.DiscordException as error:
        raise ToolFailed(f"Discord refuses it: {error}") from None


def _nonce(key: str) -> str:
    """The same nonce within a few minutes is the same message."""
    return hashlib.sha256(key.encode()).hexdigest()[:_NONCE_CHARS]


def _view(offers: Sequence[Decision]) -> dict[str, Any]:
    if not offers:
        return {}
    view = discord.ui.View(timeout=None)
    for each in offers:
        style = discord.ButtonStyle.danger if each is Decision.DENY else discord.ButtonStyle.secondary
        view.add_item(discord.ui.Button(label=f"{base.sign_of(each)} {each.value}", custom_id=each.value, style=style))
    view.stop()  # presses come to `on_interaction`; the library need not track the buttons
    return {"view": view}

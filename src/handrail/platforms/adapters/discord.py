"""Discord channels, by a bot on Discord's gateway. Questions have buttons."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import ConfigError, ToolFailed
from ...protocols import Decision
from ..adapter import News, Pressed, Said, Unreachable, sign_of
from ..requirements import library, token_of

if TYPE_CHECKING:
    import discord

T = TypeVar("T")

_SERVER = "https://discord.com/api/v10"
_NONCE_CHARS = 25
_DECISIONS = {decision.value: decision for decision in Decision}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The bot needs the intent for what messages say, which is switched on in Discord's developer portal."""

    token_variable: str = "DISCORD_BOT_TOKEN"
    server: str = _SERVER


class Adapter:
    can_edit = True
    max_chars = 2000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connected: discord.Client | None = None
        self._events: asyncio.Queue[Said | Pressed] = asyncio.Queue()

    @property
    def _client(self) -> discord.Client:
        if self._connected is None:
            raise Unreachable("Discord is not connected")
        return self._connected

    async def connect(self) -> None:
        token = token_of(self._settings.token_variable)
        await library("Discord", "discord", extra="discord")
        import discord

        discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False  # nobody speaks here
        client = discord.Client(
            intents=discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True),
            # No text of an agent calls everyone.
            allowed_mentions=discord.AllowedMentions.none(),
            member_cache_flags=discord.MemberCacheFlags.none(),
            chunk_guilds_at_startup=False,
            max_messages=None,
        )

        @client.event
        async def on_message(message: discord.Message) -> None:
            self._said(message)

        @client.event
        async def on_interaction(interaction: discord.Interaction) -> None:
            await self._tapped(interaction)

        self._connected = client
        try:
            if self._settings.server != _SERVER:
                discord.http.Route.BASE = self._settings.server.rstrip("/")
            await _asked(client.login(token))
            if self._settings.server != _SERVER:
                await _use_gateway_of(client)
        except discord.LoginFailure:
            raise ConfigError(f"Discord does not know the token in {self._settings.token_variable}") from None

    async def disconnect(self) -> None:
        client, self._connected = self._connected, None
        if client is not None:
            await client.close()

    async def receive(self, place: str) -> AsyncIterator[News]:  # noqa: ARG002  the library asks for what came meanwhile
        import discord

        # It connects anew by itself, and is told what it missed in between.
        running = asyncio.create_task(self._client.connect())
        try:
            yield News("", ())
            while True:
                coming = asyncio.create_task(self._events.get())
                await asyncio.wait({running, coming}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    break
                yield News("", (coming.result(),))
            await _asked(running)
            raise Unreachable("Discord: the connection is over")
        except discord.PrivilegedIntentsRequired:
            raise ConfigError("switch on the message content intent of the bot in Discord's developer portal") from None
        finally:
            running.cancel()
            await asyncio.wait({running})

    def _said(self, message: discord.Message) -> None:
        import discord

        if message.author.bot or message.webhook_id:
            return
        me = self._client.user
        is_for_us = me is not None and any(each.id == me.id for each in message.mentions)
        text = message.content
        for name in (f"<@{me.id}>", f"<@!{me.id}>") if me else ():
            text = text.replace(name, "")
        is_direct = isinstance(message.channel, discord.DMChannel)
        said = Said(str(message.channel.id), str(message.author.id), text.strip(" :,"), is_direct, is_for_us)
        self._events.put_nowait(said)

    async def _tapped(self, interaction: discord.Interaction) -> None:
        import discord

        if interaction.type is not discord.InteractionType.component or interaction.message is None:
            return
        # Without this Discord tells the person that it has failed.
        with contextlib.suppress(discord.DiscordException, OSError):
            await interaction.response.defer()
        told: Any = interaction.data or {}
        decision = _DECISIONS.get(str(told.get("custom_id")))
        if decision is not None:
            where, message = str(interaction.channel_id), str(interaction.message.id)
            self._events.put_nowait(Pressed(where, str(interaction.user.id), message, decision))

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        channel = self._client.get_partial_messageable(int(chat))
        return str((await _asked(channel.send(text, nonce=_nonce(key), **_view(offers)))).id)

    async def edit(self, chat: str, message: str, text: str) -> None:
        there = self._client.get_partial_messageable(int(chat)).get_partial_message(int(message))
        await _asked(there.edit(content=text, view=None))

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:
        import discord

        channel = self._client.get_partial_messageable(int(chat))
        await _asked(channel.send(file=discord.File(io.BytesIO(data), name), nonce=_nonce(key)))


async def _asked(answer: Awaitable[T]) -> T:
    """What Discord answers. Asking twice does no harm: a message has its nonce, and an edit is what it is."""
    import aiohttp
    import discord

    try:
        return await answer
    except (discord.LoginFailure, discord.PrivilegedIntentsRequired):
        raise
    except (discord.DiscordServerError, discord.GatewayNotFound, aiohttp.ClientError, OSError, TimeoutError) as error:
        raise Unreachable(f"Discord cannot be reached: {type(error).__name__}") from None
    except discord.ConnectionClosed as error:
        raise Unreachable(f"Discord: the connection is over ({error.code})") from None
    except discord.DiscordException as error:
        raise ToolFailed(f"Discord refuses it: {error}") from None


async def _use_gateway_of(client: discord.Client) -> None:
    """Of a server that speaks as Discord does: the library knows by heart where Discord's own is."""
    import discord
    import yarl

    told = await _asked(client.http.request(discord.http.Route("GET", "/gateway/bot")))
    discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(told["url"])


def _nonce(key: str) -> str:
    """The same within some minutes is the same message."""
    return hashlib.sha256(key.encode()).hexdigest()[:_NONCE_CHARS]


def _view(offers: Sequence[Decision]) -> dict[str, Any]:
    import discord

    if not offers:
        return {}
    view = discord.ui.View(timeout=None)
    for each in offers:
        style = discord.ButtonStyle.danger if each is Decision.DENY else discord.ButtonStyle.secondary
        view.add_item(discord.ui.Button(label=f"{sign_of(each)} {each.value}", custom_id=each.value, style=style))
    view.stop()  # taps come to us, and the library need not remember what each button does
    return {"view": view}

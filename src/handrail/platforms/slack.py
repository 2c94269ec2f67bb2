"""Slack: messages by a channel's incoming webhook, and chats by an app in Socket Mode (no port is opened), with buttons."""

from __future__ import annotations

import asyncio
import html
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.lazy_module import lazy_import
from ..errors import ConfigError, ToolFailed
from ..net.http_client import ask
from ..protocols import Decision
from ..types import Unavailable
from . import base

if TYPE_CHECKING:
    import aiohttp
    from slack_sdk import errors
    from slack_sdk.http_retry import builtin_async_handlers as retries
    from slack_sdk.http_retry.async_handler import AsyncRetryHandler
    from slack_sdk.socket_mode import aiohttp as socket_mode
    from slack_sdk.socket_mode import response as responses
    from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
    from slack_sdk.socket_mode.request import SocketModeRequest
    from slack_sdk.web import async_client as web
else:
    _SDK = "errors http_retry.builtin_async_handlers socket_mode.aiohttp socket_mode.response web.async_client"
    errors, retries, socket_mode, responses, web = (lazy_import(f"slack_sdk.{name}") for name in _SDK.split())
    aiohttp = lazy_import("aiohttp")

# Slack truncates a longer text.
_MAX_CHARS = 30_000
_SECTION_CHARS = 3_000
_SECONDS = 30
_TOKEN_FAULTS = "invalid_auth not_authed account_inactive token_revoked token_expired not_allowed_token_type".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The webhook's address is a key, so it is read from a variable."""

    url_variable: str = "SLACK_WEBHOOK_URL"

    takes_files = False

    def check(self) -> Unavailable | None:
        return base.http_unavailable(self.url_variable)

    async def send(self, message: base.OutgoingMessage) -> dict[str, Any]:
        parts = base.split(_escaped(message.full_text), _MAX_CHARS)
        for part in parts:
            reply = await ask("POST", base.target_key(self.url_variable), what="Slack", json={"text": part})
            if not reply.is_good:
                raise reply.failure("Slack")
        return {"parts": len(parts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Two tokens: the app's (xapp-…), which opens the connection, and the bot's (xoxb-…), which writes."""

    app_token_variable: str = "SLACK_APP_TOKEN"
    token_variable: str = "SLACK_BOT_TOKEN"
    server: str = "https://slack.com/api"


class Adapter:
    can_edit = True
    needs_reply = False
    max_chars = 8_000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connected: web.AsyncWebClient | None = None
        self._app_token = ""
        self._id = ""
        self._events: asyncio.Queue[base.Message | base.ButtonPress] = asyncio.Queue()
        self._seen: deque[str] = deque(maxlen=1_000)

    @property
    def _web(self) -> web.AsyncWebClient:
        if self._connected is None:
            raise base.Unreachable("Slack is not connected")
        return self._connected

    async def connect(self) -> None:
        self._app_token = base.account_token(self._settings.app_token_variable)
        token = base.account_token(self._settings.token_variable)
        await base.load_sdk("Slack", "slack_sdk.socket_mode.aiohttp", extra="slack")
        # Not the library's default, which sends a message again if its answer was lost.
        handlers: list[AsyncRetryHandler] = [retries.AsyncRateLimitErrorRetryHandler(max_retry_count=2)]
        server = f"{self._settings.server.rstrip('/')}/"
        self._connected = web.AsyncWebClient(token, base_url=server, timeout=_SECONDS, retry_handlers=handlers)
        self._id = str((await self._request(self._web.auth_test(), repeatable=True))["user_id"])

    async def disconnect(self) -> None:
        self._connected = None

    async def receive(self, cursor: str) -> AsyncIterator[base.Updates]:  # noqa: ARG002  Slack has no cursor
        opened = await self._request(self._web.apps_connections_open(app_token=self._app_token), repeatable=True)
        client = socket_mode.SocketModeClient(self._app_token, web_client=self._web)
        client.wss_uri = opened["url"]
        client.socket_mode_request_listeners.append(self._on_request)
        try:
            await client.connect()  # type: ignore[no-untyped-call]
            yield base.Updates("", ())
            while True:
                yield base.Updates("", (await self._events.get(),))
        finally:
            client.auto_reconnect_enabled = client.default_auto_reconnect_enabled = False
            await client.close()  # type: ignore[no-untyped-call]

    async def _on_request(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        # Slack resends what is not acknowledged within three seconds.
        await client.send_socket_mode_response(responses.SocketModeResponse(request.envelope_id))
        number = request.payload.get("event_id") or request.envelope_id
        event = self._event(request.type, request.payload)
        if event is not None and number not in self._seen:
            self._seen.append(number)
            self._events.put_nowait(event)

    def _event(self, kind: str, payload: dict[str, Any]) -> base.Message | base.ButtonPress | None:
        if kind == "events_api":
            return self._message(payload.get("event") or {})
        if kind == "slash_commands":
            chat, text = str(payload["channel_id"]), f"{payload['command']} {payload.get('text', '')}"
            return base.Message(chat, str(payload["user_id"]), text.strip(), chat.startswith("D"), is_for_us=True)
        if kind == "interactive" and payload.get("type") == "block_actions":
            decision = base.DECISIONS.get(str((payload.get("actions") or [{}])[0].get("value")))
            if decision is not None:
                chat, message = str(payload["channel"]["id"]), str(payload["message"]["ts"])
                return base.ButtonPress(chat, str(payload["user"]["id"]), message, decision)
        return None

    def _message(self, event: dict[str, Any]) -> base.Message | None:
        """A direct message or a mention. Slack sends a mention in a channel as both kinds of event; only one counts."""
        is_direct = event.get("type") == "message" and event.get("channel_type") == "im"
        is_for_us = event.get("type") == "app_mention"
        if not (is_direct or is_for_us) or event.get("bot_id") or event.get("subtype") or not event.get("user"):
            return None
        text = re.sub(rf"^\s*<@{re.escape(self._id)}(\|[^>]*)?>[\s:,]*", "", str(event.get("text", "")))
        chat, user, written = str(event["channel"]), str(event["user"]), _seconds(event.get("ts"))
        reply_to = str(event.get("thread_ts", ""))  # an answer in the thread below a question
        return base.Message(chat, user, html.unescape(text), is_direct, is_for_us, written, reply_to)

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  Slack has no such keys
        return str((await self._request(self._web.chat_postMessage(channel=chat, **_body(text, offers))))["ts"])

    async def edit(self, chat: str, message: str, text: str) -> None:
        await self._request(self._web.chat_update(channel=chat, ts=message, **_body(text, ())), repeatable=True)

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002  Slack has no such keys
        await self._request(self._web.files_upload_v2(channel=chat, filename=name, content=data))

    async def _request(self, answer: Awaitable[Any], *, repeatable: bool = False) -> Any:
        """Slack's answer. `repeatable`: sending twice is harmless, so a lost answer is Unreachable too."""
        try:
            return await answer
        except errors.SlackApiError as error:
            raise self._refusal(error) from None
        except aiohttp.ClientConnectorError:
            raise base.Unreachable("Slack cannot be reached") from None
        except (aiohttp.ClientError, TimeoutError, errors.SlackClientError) as error:
            lost = f"Slack: the answer was lost ({type(error).__name__})"
            raise base.Unreachable(lost) if repeatable else ToolFailed(f"{lost}; it may have arrived") from None

    def _refusal(self, error: Any) -> Exception:
        status = error.response.status_code
        why = str(error.response.get("error") or f"status {status}")
        if status == 429 or status >= 500:
            return base.Unreachable(f"Slack is overloaded or rate limiting us: {why}")
        if why in _TOKEN_FAULTS:
            names = f"{self._settings.token_variable} and {self._settings.app_token_variable}"
            return ConfigError(f"Slack does not accept a token ({why}); check {names}")
        return ToolFailed(f"Slack refuses it: {why}")


def _escaped(text: str) -> str:
    """Plain text for Slack: nothing in it pings a whole channel, or hides an address behind a link text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _body(text: str, offers: Sequence[Decision]) -> dict[str, Any]:
    escaped = _escaped(text)
    if not offers:
        return {"text": escaped, "mrkdwn": False, "blocks": []}
    parts = [text[start : start + _SECTION_CHARS] for start in range(0, len(text), _SECTION_CHARS)]
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "plain_text", "text": part}} for part in parts]
    buttons = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": f"{base.sign_of(each)} {each.value}", "emoji": True},
            "value": each.value,
            "action_id": each.value,
        }
        for each in offers
    ]
    return {"text": escaped, "mrkdwn": False, "blocks": [*blocks, {"type": "actions", "elements": buttons}]}


def _seconds(ts: Any) -> float | None:
    """Slack's ids of messages are times."""
    try:
        return float(ts)
    except (TypeError, ValueError):
        return None

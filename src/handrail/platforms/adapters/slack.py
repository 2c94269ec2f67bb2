"""Slack channels, by an app in Socket Mode: Slack is called from here, and nothing listens for it. Questions have buttons."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError, ToolFailed
from ...protocols import Decision
from ..adapter import News, Pressed, Said, Unreachable, sign_of
from ..requirements import library, token_of

if TYPE_CHECKING:
    from slack_sdk.socket_mode.aiohttp import SocketModeClient
    from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
    from slack_sdk.socket_mode.request import SocketModeRequest
    from slack_sdk.web.async_client import AsyncWebClient

_SECTION_CHARS = 3_000
_SECONDS = 30
_TOKEN_FAULTS = (
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "not_allowed_token_type",
)
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
        self._connected: AsyncWebClient | None = None
        self._app_token = ""
        self._id = ""
        self._events: asyncio.Queue[Said | Pressed] = asyncio.Queue()

    @property
    def _web(self) -> AsyncWebClient:
        if self._connected is None:
            raise Unreachable("Slack is not connected")
        return self._connected

    async def connect(self) -> None:
        self._app_token = token_of(self._settings.app_token_variable)
        token = token_of(self._settings.token_variable)
        await library("Slack", "slack_sdk.socket_mode.aiohttp", extra="slack")
        from slack_sdk.http_retry.async_handler import AsyncRetryHandler
        from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
        from slack_sdk.web.async_client import AsyncWebClient

        # Not the library's own choice: that one sends a message again whose answer was lost.
        patience: list[AsyncRetryHandler] = [AsyncRateLimitErrorRetryHandler(max_retry_count=2)]
        server = f"{self._settings.server.rstrip('/')}/"
        self._connected = AsyncWebClient(token, base_url=server, timeout=_SECONDS, retry_handlers=patience)
        self._id = str((await self._asked(self._web.auth_test(), again=True))["user_id"])

    async def disconnect(self) -> None:
        self._connected = None

    async def receive(self, place: str) -> AsyncIterator[News]:  # noqa: ARG002  Slack keeps no place
        from slack_sdk.socket_mode.aiohttp import SocketModeClient

        opened = await self._asked(self._web.apps_connections_open(app_token=self._app_token), again=True)
        client = SocketModeClient(self._app_token, web_client=self._web)
        client.wss_uri = opened["url"]
        client.socket_mode_request_listeners.append(self._take)
        try:
            await client.connect()  # type: ignore[no-untyped-call]
            yield News("", ())
            while True:
                yield News("", (await self._events.get(),))
        finally:
            await _close(client)

    async def _take(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        from slack_sdk.socket_mode.response import SocketModeResponse

        # What is not acknowledged within three seconds comes again.
        await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))
        event = self._event(request.type, request.payload)
        if event is not None:
            self._events.put_nowait(event)

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
        return str((await self._asked(self._web.chat_postMessage(channel=chat, **_body(text, offers))))["ts"])

    async def edit(self, chat: str, message: str, text: str) -> None:
        await self._asked(self._web.chat_update(channel=chat, ts=message, **_body(text, ())), again=True)

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002
        await self._asked(self._web.files_upload_v2(channel=chat, filename=name, content=data))

    async def _asked(self, answer: Awaitable[Any], *, again: bool = False) -> Any:
        """What Slack answers. `again`: asking twice does no harm, so that a lost answer is Unreachable too."""
        import aiohttp
        from slack_sdk.errors import SlackApiError, SlackClientError

        try:
            return await answer
        except SlackApiError as error:
            raise self._refusal(error) from None
        except aiohttp.ClientConnectorError:
            raise Unreachable("Slack cannot be reached") from None
        except (aiohttp.ClientError, TimeoutError, SlackClientError) as error:
            lost = f"Slack: the answer was lost ({type(error).__name__})"
            raise Unreachable(lost) if again else ToolFailed(f"{lost}; it may have arrived") from None

    def _refusal(self, error: Any) -> Exception:
        status = error.response.status_code
        why = str(error.response.get("error") or f"status {status}")
        if status == 429 or status >= 500:
            return Unreachable(f"Slack wants us to wait: {why}")
        if why in _TOKEN_FAULTS:
            names = f"{self._settings.token_variable} and {self._settings.app_token_variable}"
            return ConfigError(f"Slack does not accept a token ({why}); look at {names}")
        return ToolFailed(f"Slack refuses it: {why}")


async def _close(client: SocketModeClient) -> None:
    client.auto_reconnect_enabled = client.default_auto_reconnect_enabled = False
    await client.close()  # type: ignore[no-untyped-call]


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

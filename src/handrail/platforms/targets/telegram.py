"""A Telegram chat, by a bot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core.availability import first_lack, missing
from ...net.http_client import ask
from ...types import Unavailable
from ..message import UPLOAD_SECONDS, Message, absent, secret, split

_MAX_CHARS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`chat` is the chat's number, or `@name` of a channel. `server` is for a Bot API server of one's own."""

    chat: str
    token_variable: str = "TELEGRAM_BOT_TOKEN"
    server: str = "https://api.telegram.org"

    takes_files = True

    def check(self) -> Unavailable | None:
        return first_lack(missing("messages", "httpx"), absent(self.token_variable))

    async def send(self, message: Message) -> dict[str, Any]:
        # Without a parse mode: what an agent writes is text, not markup that may fail or mislead.
        parts = split(message.whole, _MAX_CHARS)
        ids = [await self._call("sendMessage", json={"chat_id": self.chat, "text": part}) for part in parts]
        for each in message.attachments:
            files = {"document": (each.name, each.data, each.mime)}
            sent = self._call("sendDocument", seconds=UPLOAD_SECONDS, data={"chat_id": self.chat}, files=files)
            ids.append(await sent)
        return {"parts": len(parts), "message_ids": ids}

    async def _call(self, method: str, **content: Any) -> Any:
        url = f"{self.server.rstrip('/')}/bot{secret(self.token_variable)}/{method}"
        reply = await ask("POST", url, what="Telegram", **content)
        told = reply.json()
        if not reply.is_good or not isinstance(told, dict) or not told.get("ok"):
            raise reply.failure("Telegram")
        return told["result"].get("message_id")

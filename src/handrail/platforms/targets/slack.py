"""A Slack channel, by an incoming webhook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core.availability import first_lack, missing
from ...net.http_client import ask
from ...types import Unavailable
from ..message import Message, absent, secret, split

# Slack cuts a longer text.
_MAX_CHARS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The webhook's address is a key: it stands in a variable."""

    url_variable: str = "SLACK_WEBHOOK_URL"

    takes_files = False

    def check(self) -> Unavailable | None:
        return first_lack(missing("messages", "httpx"), absent(self.url_variable))

    async def send(self, message: Message) -> dict[str, Any]:
        parts = split(_escaped(message.whole), _MAX_CHARS)
        for part in parts:
            reply = await ask("POST", secret(self.url_variable), what="Slack", json={"text": part})
            if not reply.is_good:
                raise reply.failure("Slack")
        return {"parts": len(parts)}


def _escaped(text: str) -> str:
    """As Slack wants it: nothing in the text calls a whole channel, or hides an address behind words."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

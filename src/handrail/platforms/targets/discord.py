"""A Discord channel, by a webhook."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ...core.availability import first_lack, missing
from ...net.http_client import ask
from ...types import Unavailable
from ..message import UPLOAD_SECONDS, Message, absent, secret, split

_MAX_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The webhook's address is a key: it stands in a variable."""

    url_variable: str = "DISCORD_WEBHOOK_URL"

    takes_files = True

    def check(self) -> Unavailable | None:
        return first_lack(missing("messages", "httpx"), absent(self.url_variable))

    async def send(self, message: Message) -> dict[str, Any]:
        parts = split(message.whole, _MAX_CHARS)
        ids = []
        for number, part in enumerate(parts, 1):
            # No text of an agent calls everyone.
            body = {"content": part, "allowed_mentions": {"parse": []}}
            content: dict[str, Any] = {"json": body}
            if message.attachments and number == len(parts):
                files = {f"files[{n}]": (each.name, each.data, each.mime) for n, each in enumerate(message.attachments)}
                content = {"data": {"payload_json": json.dumps(body)}, "files": files, "seconds": UPLOAD_SECONDS}
            reply = await ask("POST", secret(self.url_variable), what="Discord", params={"wait": "true"}, **content)
            if not reply.is_good:
                raise reply.failure("Discord")
            ids.append((reply.json() or {}).get("id"))
        return {"parts": len(parts), "message_ids": ids}

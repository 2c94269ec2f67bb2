"""Any service that accepts a JSON object by HTTP POST."""

import base64
import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..errors import ConfigError
from ..net.http_client import ask
from ..types import Unavailable
from .base import UPLOAD_SECONDS, OutgoingMessage, http_unavailable, target_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address is `url`, or the value of the variable `url_variable` if the address contains a key. With `secret_variable`
    the body is signed: `X-Handrail-Signature: sha256=<HMAC-SHA256 of the body, in hex>`."""

    url: str = ""
    url_variable: str = ""
    secret_variable: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    takes_files = True

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.url_variable):
            raise ConfigError("give url or url_variable")

    def check(self) -> Unavailable | None:
        return http_unavailable(*(name for name in (self.url_variable, self.secret_variable) if name))

    async def send(self, message: OutgoingMessage) -> dict[str, Any]:
        message_id = uuid.uuid4().hex
        body = json.dumps(
            {
                "id": message_id,
                "sent_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "subject": message.subject,
                "text": message.text,
                "attachments": [
                    {"name": each.name, "type": each.mime, "base64": base64.b64encode(each.data).decode()}
                    for each in message.attachments
                ],
            }
        ).encode()
        headers = {"content-type": "application/json", "idempotency-key": message_id, **self.headers}
        if self.secret_variable:
            signature = hmac.new(target_key(self.secret_variable).encode(), body, hashlib.sha256).hexdigest()
            headers["x-handrail-signature"] = f"sha256={signature}"
        url = self.url or target_key(self.url_variable)
        seconds = UPLOAD_SECONDS if message.attachments else 30.0
        reply = await ask("POST", url, what="the webhook", seconds=seconds, headers=headers, content=body)
        if not reply.is_good:
            raise reply.failure("the webhook")
        return {"id": message_id, "status": reply.status}

"""Any of the services that Apprise knows (ntfy, Pushover, Teams, Signal, SMS, ...), by its address for it."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.workers import pool
from ...core.availability import first_lack, missing
from ...errors import ToolFailed
from ...types import Unavailable
from ..message import Attachment, Message, absent, secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address, such as `ntfy://topic`, holds keys: it stands in a variable."""

    url_variable: str

    takes_files = True

    def check(self) -> Unavailable | None:
        return first_lack(missing("apprise", "apprise"), absent(self.url_variable))

    async def send(self, message: Message) -> dict[str, Any]:
        return await asyncio.wrap_future(pool.submit(self._notify, message))

    def _notify(self, message: Message) -> dict[str, Any]:
        import apprise

        service = apprise.Apprise()
        if not service.add(secret(self.url_variable)):
            raise ToolFailed(f"{self.url_variable} holds no address that Apprise knows; tell the user")
        with tempfile.TemporaryDirectory(prefix="handrail-") as folder:
            paths = [_written(Path(folder) / str(number), each) for number, each in enumerate(message.attachments)]
            if not service.notify(body=message.text, title=message.subject, attach=paths or None):
                raise ToolFailed("the service did not take the message; its address or its key may be wrong")
        return {}


def _written(folder: Path, attachment: Attachment) -> str:
    """In a folder of its own: two may have the same name."""
    folder.mkdir()
    path = folder / attachment.name
    path.write_bytes(attachment.data)
    return str(path)

"""Any of the services that Apprise supports (ntfy, Pushover, Teams, Signal, SMS, ...), by its Apprise address."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.lazy_module import lazy_import
from ..base.temporary_folders import temporary_folder
from ..base.workers import pool
from ..core.availability import first_lack, missing
from ..errors import ToolFailed
from ..types import Unavailable
from .base import Attachment, OutgoingMessage, missing_key, target_key

if TYPE_CHECKING:
    import apprise
else:
    apprise = lazy_import("apprise")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The address, such as `ntfy://topic`, contains keys, so it is read from a variable."""

    url_variable: str

    takes_files = True

    def check(self) -> Unavailable | None:
        return first_lack(missing("apprise", "apprise"), missing_key(self.url_variable))

    async def send(self, message: OutgoingMessage) -> dict[str, Any]:
        return await asyncio.wrap_future(pool.submit(self._notify, message))

    def _notify(self, message: OutgoingMessage) -> dict[str, Any]:
        service = apprise.Apprise()
        if not service.add(target_key(self.url_variable)):
            raise ToolFailed(f"{self.url_variable} does not hold an address that Apprise knows; tell the user")
        with temporary_folder("message") as folder:
            paths = [_written(Path(folder) / str(number), each) for number, each in enumerate(message.attachments)]
            if not service.notify(body=message.text, title=message.subject, attach=paths or None):
                raise ToolFailed("the service did not accept the message; its address or its key may be wrong")
        return {}


def _written(folder: Path, attachment: Attachment) -> str:
    """Each in its own folder: two may have the same name."""
    folder.mkdir()
    path = folder / attachment.name
    path.write_bytes(attachment.data)
    return str(path)

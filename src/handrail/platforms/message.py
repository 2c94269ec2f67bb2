"""What a message is, and what a kind of target has to do with it."""

from __future__ import annotations

import mimetypes
from typing import Any, NamedTuple, Protocol

from ..config.keys import key_of
from ..errors import ToolFailed
from ..types import Unavailable

# What a message with files may take: some lines are slow.
UPLOAD_SECONDS = 100.0


class Attachment(NamedTuple):
    name: str
    data: bytes

    @property
    def mime(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


class Message(NamedTuple):
    """What is to be sent. `subject` is empty where nobody gave one."""

    text: str
    subject: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def whole(self) -> str:
        """One text, for targets that know no subject."""
        return f"{self.subject}\n\n{self.text}" if self.subject else self.text


class Target(Protocol):
    """Somebody who can be written to. It is made of its settings: they are the fields of a frozen dataclass.

    A kind whose people can write back has `async def ask(question, *, seconds) -> str | None` too: the next thing that one of
    them writes, None when nobody does within so many seconds after the question was sent.
    """

    @property
    def takes_files(self) -> bool: ...

    def check(self) -> Unavailable | None:
        """Why nothing can be sent now; None when it can. Looks at what is configured and installed, and asks no server."""

    async def send(self, message: Message) -> dict[str, Any]:
        """Deliver it. What is told of it: ids, the number of parts. Raises ToolFailed or CallTimeout."""


def absent(variable: str) -> Unavailable | None:
    """Whether the key is missing that a variable names."""
    if key_of(variable):
        return None
    return Unavailable(f"{variable or 'its variable'} is not set", "set it in the environment")


def secret(variable: str) -> str:
    """The key that a variable names. Raises ToolFailed when there is none."""
    key = key_of(variable)
    if not key:
        raise ToolFailed(f"{absent(variable)}; tell the user")
    return key


def split(text: str, max_chars: int) -> list[str]:
    """The text in parts that are short enough, cut at ends of lines or words where there are any."""
    parts = []
    while len(text) > max_chars:
        head = text[:max_chars]
        cut = max(head.rfind("\n"), 0) or max(head.rfind(" "), 0)
        if cut < max_chars // 2:
            cut = max_chars
        parts.append(text[:cut])
        text = text[cut:].lstrip("\n") if cut < max_chars else text[cut:]
    return [*parts, text]

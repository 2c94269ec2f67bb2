"""What a platform has to do, and what it tells."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol

from ..errors import HandrailError
from ..protocols import Decision

# A tap on one of these answers a question. The first of each kind is the one that is offered.
SIGNS = {
    "✅": Decision.ONCE,
    "🕐": Decision.TASK,
    "🔁": Decision.SESSION,
    "♾": Decision.ALWAYS,
    "❌": Decision.DENY,
    "👍": Decision.ONCE,
    "👎": Decision.DENY,
}


class Unreachable(HandrailError):
    """The platform cannot be spoken to now. What was to be sent was not, or sending it again with its key is harmless."""


class Said(NamedTuple):
    """Somebody wrote something. `is_direct`: nobody else reads there; `is_for_us`: we are mentioned."""

    chat: str
    person: str
    text: str
    is_direct: bool
    is_for_us: bool


class Pressed(NamedTuple):
    """Somebody tapped on an answer below a message of ours."""

    chat: str
    person: str
    message: str
    decision: Decision


class News(NamedTuple):
    """What came, and the place from which to go on after it."""

    place: str
    events: Sequence[Said | Pressed]


class Adapter(Protocol):
    """One account on one platform. Each method raises Unreachable, or another HandrailError when trying again is no use."""

    @property
    def can_edit(self) -> bool: ...
    @property
    def max_chars(self) -> int: ...

    async def connect(self) -> None: ...
    async def disconnect(self) -> None: ...

    def receive(self, place: str) -> AsyncIterator[News]:
        """What comes, from a place on. With the empty place only what comes from now on."""

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        """The message's id. Where the platform can, the same key twice is one message. `offers` can be tapped."""

    async def edit(self, chat: str, message: str, text: str) -> None:
        """What could be tapped goes, where the platform can."""

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None: ...


def sign_of(decision: Decision) -> str:
    return next(sign for sign, meant in SIGNS.items() if meant is decision)


def decision_of(sign: str) -> Decision | None:
    """What a tapped sign means. Skin tones and the way it is drawn do not count."""
    plain = "".join(each for each in sign if each != "\ufe0f" and not "\U0001f3fb" <= each <= "\U0001f3ff")
    return SIGNS.get(plain)

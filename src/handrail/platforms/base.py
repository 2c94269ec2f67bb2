"""The two roles of a platform, sending and chatting, the values they pass, and what several platforms share."""

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeVar

from ..config.keys import key_of
from ..core.availability import first_lack, missing
from ..errors import CallTimeout, ConfigError, HandrailError, ToolFailed
from ..net.http_client import NotReached
from ..protocols import Decision
from ..types import Unavailable

T = TypeVar("T")

# Uploads may take longer: some connections are slow.
UPLOAD_SECONDS = 100.0
# What the key of a message that asks a question starts with; the question's id follows.
QUESTION_KEY = "ask-"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
DECISIONS = {decision.value: decision for decision in Decision}
# A tap on one of these answers a question. The first one for each decision is the one that is offered.
SIGNS = {
    "✅": Decision.ONCE,
    "🧪": Decision.TRY,
    "🕐": Decision.TASK,
    "🔁": Decision.SESSION,
    "♾": Decision.ALWAYS,
    "❌": Decision.DENY,
    "👍": Decision.ONCE,
    "👎": Decision.DENY,
}


class Attachment(NamedTuple):
    name: str
    data: bytes

    @property
    def mime(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


class OutgoingMessage(NamedTuple):
    """A message for a target. `subject` may be empty."""

    text: str
    subject: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def full_text(self) -> str:
        """Subject and text as one, for platforms without subjects."""
        return f"{self.subject}\n\n{self.text}" if self.subject else self.text


class SendTarget(Protocol):
    """A configured recipient. Its settings are the fields of a frozen dataclass. A platform whose users can reply also has
    `async def ask(question, *, seconds) -> str | None`: the next message that one of them writes, or None if nobody replies
    within that many seconds after the question was sent."""

    @property
    def takes_files(self) -> bool: ...

    def check(self) -> Unavailable | None:
        """Why nothing can be sent now, or None. Looks at configuration and installed packages only, not at the server."""

    async def send(self, message: OutgoingMessage) -> dict[str, Any]:
        """Deliver the message and return fields for the result (ids, number of parts). Raises ToolFailed or CallTimeout."""


class Unreachable(HandrailError):
    """The platform cannot be reached now. Either nothing was sent, or sending it again with the same key is harmless."""


class Message(NamedTuple):
    """A user wrote something. `is_direct`: nobody else reads there; `is_for_us`: the account is mentioned. `written_at` is when,
    as `time.time()`; None where the platform does not tell and it has just been written. `reply_to` is the message of ours that
    it replies to. `question` is the id of the question that it replies to, where the platform proves that itself."""

    chat: str
    user: str
    text: str
    is_direct: bool
    is_for_us: bool
    written_at: float | None = None
    reply_to: str = ""
    question: str = ""


class ButtonPress(NamedTuple):
    """A user tapped an answer below one of our messages."""

    chat: str
    user: str
    message: str
    decision: Decision


class Updates(NamedTuple):
    """New events, and the cursor from which to continue after them."""

    cursor: str
    events: Sequence[Message | ButtonPress]


class ChatAdapter(Protocol):
    """One account on one platform. Each method raises Unreachable, or another HandrailError if a retry is pointless."""

    @property
    def can_edit(self) -> bool: ...
    @property
    def max_chars(self) -> int: ...
    @property
    def needs_reply(self) -> bool:
        """Whether a question is only answered by a reply to it, as a sender can be forged otherwise."""

    async def connect(self) -> None: ...
    async def disconnect(self) -> None: ...

    def receive(self, cursor: str) -> AsyncIterator[Updates]:
        """Updates after a cursor. With an empty cursor only what arrives from now on."""

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:
        """Returns the message's id. Where the platform can, the same key twice is one message. `offers` can be tapped."""

    async def edit(self, chat: str, message: str, text: str) -> None:
        """Replace a message's text and, where the platform can, remove its buttons."""

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None: ...


def sign_of(decision: Decision) -> str:
    return next(sign for sign, meant in SIGNS.items() if meant is decision)


def decision_of(sign: str) -> Decision | None:
    """The decision a sign stands for, whatever its skin tone and variation selector."""
    plain = "".join(each for each in sign if each != "\ufe0f" and not "\U0001f3fb" <= each <= "\U0001f3ff")
    return SIGNS.get(plain)


def missing_key(variable: str) -> Unavailable | None:
    """Why there is no key in a variable, or None if there is one."""
    if key_of(variable):
        return None
    return Unavailable(f"{variable or 'its variable'} is not set", "set it in the environment")


def http_unavailable(*variables: str) -> Unavailable | None:
    """What is missing for a target that is reached by HTTP with the keys in these variables."""
    return first_lack(missing("messages", "httpx"), *map(missing_key, variables))


def target_key(variable: str) -> str:
    """The key of a target. Raises ToolFailed if there is none."""
    if not (key := key_of(variable)):
        raise ToolFailed(f"{missing_key(variable)}; tell the user")
    return key


def account_token(variable: str) -> str:
    """The token of an account. Raises ConfigError if there is none."""
    if not (token := key_of(variable)):
        raise ConfigError(f"{variable or 'the variable of the token'} is not set; it holds the account's token")
    return token


async def reached(request: Awaitable[T], *, repeatable: bool = True) -> T:
    """What a server answers an adapter. Raises Unreachable where nothing has arrived, or, if the request is `repeatable`, where
    the answer was lost."""
    try:
        return await request
    except (ToolFailed, CallTimeout) as error:
        status = error.details.get("status") or 0
        is_lost, is_busy = status < 400, status == 429 or status >= 500
        if isinstance(error, NotReached) or is_busy or (is_lost and repeatable):
            raise Unreachable(str(error)) from None
        raise ToolFailed(f"{error}; it may have arrived") if is_lost else error from None


def split(text: str, max_chars: int) -> list[str]:
    """The text in parts that are short enough, cut at ends of lines or words where possible."""
    parts = []
    while len(text) > max_chars:
        head = text[:max_chars]
        cut = max(head.rfind("\n"), 0) or max(head.rfind(" "), 0)
        if cut < max_chars // 2:
            cut = max_chars
        parts.append(text[:cut])
        text = text[cut:].lstrip("\n") if cut < max_chars else text[cut:]
    return [*parts, text]


async def load_sdk(platform: str, module: str, *, extra: str) -> None:
    """Import a library in a thread: some take a second, and the server must not stop for that."""
    try:
        await asyncio.to_thread(import_module, module)
    except ImportError:
        raise ConfigError(f"{platform} needs one more package: pip install 'handrail[{extra}]'") from None

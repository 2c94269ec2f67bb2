"""Letters: a mailbox that is looked into by IMAP, and answers by SMTP.

Anybody can write any sender into a letter. So every letter of ours has a mark in its subject that only its reader knows, and
only a letter that bears the mark of its sender is heard: whoever answers can read the mailbox that they say they have.
"""

from __future__ import annotations

import asyncio
import contextlib
import email
import email.policy
import email.utils
import hashlib
import hmac
import imaplib
import logging
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import NamedTuple

from ...config.keys import without_key
from ...errors import CallTimeout, ConfigError, ToolFailed
from ...protocols import Decision
from ..adapter import News, Said, Unreachable
from ..message import Attachment, Message
from ..requirements import token_of
from ..targets.email import Target

log = logging.getLogger(__name__)

_PORTS = {"tls": 993, "starttls": 143, "none": 143}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECONDS = 30.0
_MARK_CHARS = 16
_MARK = re.compile(r"\[handrail ([0-9a-f]{16})\]")
_QUOTE_BEGINS = re.compile(r"^(>|On .{0,200}wrote:\s*$|-+ ?Original Message|_{10,}$|From: )")
# Who writes without a mark is told how, so often: a forged sender must not be buried in letters.
_MAX_TOLD, _TOLD_SECONDS = 20, 3600.0
_MAX_BYTES = 1024 * 1024
_MAX_AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A mailbox of the agent's own. `security` is tls, starttls or none, the last for servers on this machine only."""

    address: str
    imap_host: str
    smtp_host: str
    username: str = ""
    password_variable: str = "MAIL_PASSWORD"
    imap_port: int | None = None
    smtp_port: int | None = None
    security: str = "tls"
    poll_seconds: float = 15.0

    def __post_init__(self) -> None:
        if self.security not in _PORTS:
            raise ConfigError(f"security must be one of {', '.join(_PORTS)}, not {self.security!r}")
        if self.security == "none" and not {self.imap_host, self.smtp_host} <= set(_LOOPBACK):
            raise ConfigError("a password would be sent without encryption; set security to tls or starttls")


class Letter(NamedTuple):
    sender: str
    subject: str
    text: str
    is_automatic: bool


class Adapter:
    can_edit = False
    max_chars = 50_000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._password = ""
        self._told: list[float] = []

    async def connect(self) -> None:
        self._password = token_of(self._settings.password_variable)

    async def disconnect(self) -> None:
        """Nothing stays open between two looks."""

    async def receive(self, place: str) -> AsyncIterator[News]:
        while True:
            place, letters = await asyncio.to_thread(self._look, place)
            yield News(place, [each for letter in letters if (each := await self._event(letter))])
            await asyncio.sleep(self._settings.poll_seconds)

    async def _event(self, letter: Letter) -> Said | None:
        if letter.is_automatic or letter.sender == self._settings.address.lower():
            return None
        mark = _MARK.search(letter.subject)
        if mark and hmac.compare_digest(mark[1], self._mark_of(letter.sender)):
            return Said(letter.sender, letter.sender, letter.text, is_direct=True, is_for_us=True)
        now = time.monotonic()
        self._told = [each for each in self._told if each > now - _TOLD_SECONDS]
        if len(self._told) < _MAX_TOLD:
            self._told.append(now)
            text = "Anybody can write your name on a letter. To show that it is you, answer to this one."
            with contextlib.suppress(ToolFailed, CallTimeout, Unreachable):
                await self.send(letter.sender, text, key="")
        return None

    def _mark_of(self, address: str) -> str:
        made = hmac.new(self._password.encode(), f"handrail mark for {address.lower()}".encode(), hashlib.sha256)
        return made.hexdigest()[:_MARK_CHARS]

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  there are no buttons
        return await self._send(chat, text)

    async def edit(self, chat: str, message: str, text: str) -> None:  # noqa: ARG002
        raise ToolFailed("a letter that was sent cannot be changed")

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002
        await self._send(chat, "The whole answer.", Attachment(name, data))

    async def _send(self, chat: str, text: str, *files: Attachment) -> str:
        settings = self._settings
        target = Target(
            host=settings.smtp_host,
            sender=settings.address,
            to=(chat,),
            port=settings.smtp_port,
            security=settings.security,
            username=settings.username or settings.address,
            password_variable=settings.password_variable,
        )
        try:
            told = await target.send(Message(text, f"Re: [handrail {self._mark_of(chat)}]", tuple(files)))
        except ToolFailed as error:
            if isinstance(error.__context__, ConnectionRefusedError | socket.gaierror):
                raise Unreachable(str(error)) from None
            raise
        return str(told["message_id"])

    def _look(self, place: str) -> tuple[str, list[Letter]]:
        """What came after a place: `VALIDITY:UID`. In a thread of its own."""
        try:
            box = self._box()
            try:
                box.login(self._settings.username or self._settings.address, self._password)
                return self._new_letters(box, place)
            finally:
                box.logout()
        except imaplib.IMAP4.error as error:
            raise ToolFailed(f"the mailbox cannot be read: {without_key(str(error), self._password)[:200]}") from None
        except OSError as error:
            raise Unreachable(f"the mail server cannot be reached: {type(error).__name__}") from None

    def _box(self) -> imaplib.IMAP4:
        settings = self._settings
        port = settings.imap_port or _PORTS[settings.security]
        if settings.security == "tls":
            return imaplib.IMAP4_SSL(
                settings.imap_host, port, ssl_context=ssl.create_default_context(), timeout=_SECONDS
            )
        box = imaplib.IMAP4(settings.imap_host, port, timeout=_SECONDS)
        if settings.security == "starttls":
            box.starttls(ssl.create_default_context())
        return box

    def _new_letters(self, box: imaplib.IMAP4, place: str) -> tuple[str, list[Letter]]:
        if box.select("INBOX", readonly=True)[0] != "OK":
            raise Unreachable("the mailbox cannot be opened")
        validity = (box.response("UIDVALIDITY")[1] or [b"0"])[0] or b"0"
        known, _, last = place.partition(":")
        found = box.uid("SEARCH", "UID", f"{int(last or 0) + 1}:*")[1][0] or b""
        uids = sorted(int(each) for each in found.split())
        if known != validity.decode():  # the first look, or the mailbox was made anew: what is there is old
            return f"{validity.decode()}:{max(uids, default=0)}", []
        new = [uid for uid in uids if uid > int(last)][:_MAX_AT_ONCE]
        letters = [letter for uid in new if (letter := _fetched(box, uid))]
        return f"{known}:{max(new, default=int(last))}", letters


def _fetched(box: imaplib.IMAP4, uid: int) -> Letter | None:
    parts = box.uid("FETCH", str(uid), f"(BODY.PEEK[]<0.{_MAX_BYTES}>)")[1]
    raw = next((part[1] for part in parts if isinstance(part, tuple)), None)
    try:
        return parse(raw) if raw else None
    except Exception as error:  # noqa: BLE001  a letter may be broken in any way, and must not stop those behind it
        log.info("a letter cannot be read: %s", type(error).__name__)
        return None


def parse(raw: bytes) -> Letter | None:
    """A letter as it lies in the mailbox. None for one that says nothing, or not who sent it."""
    letter = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(letter, EmailMessage)
    sender = email.utils.parseaddr(str(letter.get("From", "")))[1].lower()
    body = letter.get_body(("plain",))
    if not sender or body is None:
        return None
    automatic = str(letter.get("Auto-Submitted", "no")).lower() != "no" or bool(letter.get("List-Id"))
    return Letter(sender, str(letter.get("Subject", "")), without_quote(str(body.get_content())), automatic)


def without_quote(text: str) -> str:
    """What is new in an answer: all up to where it quotes."""
    lines = text.splitlines()
    end = next((number for number, line in enumerate(lines) if _QUOTE_BEGINS.match(line)), len(lines))
    return "\n".join(lines[:end]).strip()

"""Email: messages by SMTP, and chats by a mailbox that is polled by IMAP. Anybody can forge a sender. So every email of ours
has a mark in its subject that only its recipient knows, and only an email with its sender's mark is accepted: whoever replies
can read the mailbox that they claim to have. Each question has a mark of its own, and only a reply with that mark answers it;
every mark expires. An email that was forwarded gives away no more than that."""

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
import smtplib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any, NamedTuple

from ..base.rate_limit import RateLimit
from ..base.workers import pool
from ..config.keys import without_key
from ..errors import CallTimeout, ConfigError, ToolFailed
from ..protocols import Decision
from ..types import Unavailable
from . import base

log = logging.getLogger(__name__)

_IMAP_PORTS = {"tls": 993, "starttls": 143, "none": 143}
_SMTP_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_SECONDS = 30.0
_MARK_CHARS = 20
# When it was made, the question that it is for (or `-`), and the proof that both are ours.
_MARK = re.compile(r"\[handrail ([0-9]{9,11})\.([0-9a-f]{1,32}|-)\.([0-9a-f]{20})\]")
_MARK_SECONDS = 7 * 86_400
_QUOTE_START = re.compile(r"^(>|On .{0,200}wrote:\s*$|-+ ?Original Message|_{10,}$|From: )")
# How many senders without a mark get an explanation, per period: the owner of a forged address must not be flooded.
_MAX_EXPLANATIONS, _EXPLANATION_SECONDS = 20, 3600.0
_MAX_BYTES = 1024 * 1024
_MAX_PER_POLL = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`security` is starttls, tls or none; without encryption a password is only sent to this machine."""

    host: str
    sender: str
    to: tuple[str, ...]
    port: int | None = None
    security: str = "starttls"
    username: str = ""
    password_variable: str = "SMTP_PASSWORD"

    takes_files = True

    def __post_init__(self) -> None:
        if self.security not in _SMTP_PORTS:
            raise ConfigError(f"security must be one of {', '.join(_SMTP_PORTS)}, not {self.security!r}")
        if not self.to:
            raise ConfigError("to is empty: name at least one address")
        if self.username and self.security == "none" and self.host not in base.LOOPBACK_HOSTS:
            raise ConfigError("a password would be sent without encryption; set security to starttls or tls")

    def check(self) -> Unavailable | None:
        return base.missing_key(self.password_variable) if self.username else None

    async def send(self, message: base.OutgoingMessage) -> dict[str, Any]:
        mail = self._mail(message)
        delivery = _Delivery(self)
        try:
            refused = await asyncio.wrap_future(pool.submit(delivery.run, mail))
        except asyncio.CancelledError:
            delivery.hang_up()
            raise
        except TimeoutError:
            raise CallTimeout(f"the mail server {self.host} did not answer within {_SECONDS:g} s") from None
        except smtplib.SMTPRecipientsRefused as error:
            raise ToolFailed(f"{self.host} refuses every address: {_reasons(error.recipients)}") from None
        except smtplib.SMTPAuthenticationError:
            raise ToolFailed(f"{self.host} refuses the user name or the password; tell the user") from None
        except (OSError, smtplib.SMTPException) as error:  # also TLS errors: a certificate that is not trusted
            raise ToolFailed(f"the mail server {self.host} did not accept the email: {error}") from None
        result: dict[str, Any] = {"message_id": mail["Message-ID"]}
        return {**result, "refused": _reasons(refused)} if refused else result

    def _mail(self, message: base.OutgoingMessage) -> EmailMessage:
        mail = EmailMessage()
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        # One line: what follows a line break would be another header.
        mail["Subject"] = " ".join(message.subject.split()) or _first_words(message.text)
        domain = self.sender.rpartition("@")[2].strip("<> ") or "localhost"
        mail["Date"], mail["Message-ID"] = formatdate(localtime=True), make_msgid(domain=domain)
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(message.text)
        for attachment in message.attachments:
            main, _, sub = attachment.mime.partition("/")
            mail.add_attachment(attachment.data, maintype=main, subtype=sub, filename=attachment.name)
        return mail


class _Delivery:
    """One SMTP session, on a worker thread. `hang_up` ends it from another thread."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._server: smtplib.SMTP | None = None

    def run(self, mail: EmailMessage) -> dict[str, tuple[int, bytes]]:
        target = self._target
        port = target.port or _SMTP_PORTS[target.security]
        context = ssl.create_default_context()
        if target.security == "tls":
            self._server = smtplib.SMTP_SSL(target.host, port, timeout=_SECONDS, context=context)
        else:
            self._server = smtplib.SMTP(target.host, port, timeout=_SECONDS)
        with self._server as server:
            if target.security == "starttls":
                server.starttls(context=context)
            if target.username:
                server.login(target.username, base.target_key(target.password_variable))
            return server.send_message(mail)

    def hang_up(self) -> None:
        if (sock := self._server.sock if self._server is not None else None) is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The agent's own mailbox. `security` is tls, starttls or none, the last for servers on this machine only."""

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
        if self.security not in _IMAP_PORTS:
            raise ConfigError(f"security must be one of {', '.join(_IMAP_PORTS)}, not {self.security!r}")
        if self.security == "none" and not {self.imap_host, self.smtp_host} <= set(base.LOOPBACK_HOSTS):
            raise ConfigError("a password would be sent without encryption; set security to tls or starttls")


class ReceivedEmail(NamedTuple):
    sender: str
    subject: str
    text: str
    is_automatic: bool


class Adapter:
    can_edit = False
    needs_reply = True
    max_chars = 50_000

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._password = ""
        self._explanations = RateLimit(_MAX_EXPLANATIONS, _EXPLANATION_SECONDS)

    async def connect(self) -> None:
        self._password = base.account_token(self._settings.password_variable)

    async def disconnect(self) -> None:
        """Nothing stays open between two polls."""

    async def receive(self, cursor: str) -> AsyncIterator[base.Updates]:
        while True:
            cursor, mails = await asyncio.to_thread(self._poll, cursor)
            yield base.Updates(cursor, [each for mail in mails if (each := await self._event(mail))])
            await asyncio.sleep(self._settings.poll_seconds)

    async def _event(self, mail: ReceivedEmail) -> base.Message | None:
        sender = mail.sender
        if mail.is_automatic or sender == self._settings.address.lower():
            return None
        if (question := self._proved(mail)) is not None:
            return base.Message(sender, sender, mail.text, is_direct=True, is_for_us=True, question=question.strip("-"))
        if self._explanations.allows():
            text = "Anybody can forge your address. To show that it is you, reply to this email."
            with contextlib.suppress(ToolFailed, CallTimeout, base.Unreachable):
                await self.send(sender, text, key="")
        return None

    def _proved(self, mail: ReceivedEmail) -> str | None:
        """The question whose mark the email has, `-` for the mark of another email of ours; None without a valid mark."""
        found = _MARK.search(mail.subject)
        if found is None or not -60 <= time.time() - int(found[1]) <= _MARK_SECONDS:
            return None
        return found[2] if hmac.compare_digest(found[0], self._mark_of(mail.sender, found[2], int(found[1]))) else None

    def _mark_of(self, address: str, question: str = "-", made: int | None = None) -> str:
        about = f"{int(time.time()) if made is None else made}.{question}"
        text = f"handrail mark {about} for {address.lower()}"
        proof = hmac.new(self._password.encode(), text.encode(), hashlib.sha256)
        return f"[handrail {about}.{proof.hexdigest()[:_MARK_CHARS]}]"

    async def send(self, chat: str, text: str, *, key: str, offers: Sequence[Decision] = ()) -> str:  # noqa: ARG002  there are no buttons
        is_question = key.startswith(base.QUESTION_KEY)
        return await self._send(chat, text, question=key.removeprefix(base.QUESTION_KEY) if is_question else "-")

    async def edit(self, chat: str, message: str, text: str) -> None:  # noqa: ARG002  there is nothing to do
        raise ToolFailed("an email that was sent cannot be changed")

    async def send_file(self, chat: str, name: str, data: bytes, *, key: str) -> None:  # noqa: ARG002  SMTP has no such keys
        await self._send(chat, "The full answer.", base.Attachment(name, data))

    async def _send(self, chat: str, text: str, *files: base.Attachment, question: str = "-") -> str:
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
            sent = await target.send(base.OutgoingMessage(text, f"Re: {self._mark_of(chat, question)}", tuple(files)))
        except ToolFailed as error:
            if isinstance(error.__context__, ConnectionRefusedError | socket.gaierror):
                raise base.Unreachable(str(error)) from None
            raise
        return str(sent["message_id"])

    def _poll(self, cursor: str) -> tuple[str, list[ReceivedEmail]]:
        """What arrived after a cursor, which is `VALIDITY:UID`. Runs on its own thread."""
        try:
            box = self._box()
            try:
                box.login(self._settings.username or self._settings.address, self._password)
                return self._new_mails(box, cursor)
            finally:
                box.logout()
        except imaplib.IMAP4.error as error:
            raise ToolFailed(f"the mailbox cannot be read: {without_key(str(error), self._password)[:200]}") from None
        except OSError as error:
            raise base.Unreachable(f"the mail server cannot be reached: {type(error).__name__}") from None

    def _box(self) -> imaplib.IMAP4:
        security, host = self._settings.security, self._settings.imap_host
        port, context = self._settings.imap_port or _IMAP_PORTS[security], ssl.create_default_context()
        if security == "tls":
            return imaplib.IMAP4_SSL(host, port, ssl_context=context, timeout=_SECONDS)
        box = imaplib.IMAP4(host, port, timeout=_SECONDS)
        if security == "starttls":
            box.starttls(context)
        return box

    def _new_mails(self, box: imaplib.IMAP4, cursor: str) -> tuple[str, list[ReceivedEmail]]:
        if box.select("INBOX", readonly=True)[0] != "OK":
            raise base.Unreachable("the mailbox cannot be opened")
        validity = (box.response("UIDVALIDITY")[1] or [b"0"])[0] or b"0"
        known, _, last = cursor.partition(":")
        found = box.uid("SEARCH", "UID", f"{int(last or 0) + 1}:*")[1][0] or b""
        uids = sorted(int(each) for each in found.split())
        if known != validity.decode():  # the first poll, or a new mailbox: what is there is old
            return f"{validity.decode()}:{max(uids, default=0)}", []
        new = [uid for uid in uids if uid > int(last)][:_MAX_PER_POLL]
        mails = [mail for uid in new if (mail := _fetched(box, uid))]
        return f"{known}:{max(new, default=int(last))}", mails


def _fetched(box: imaplib.IMAP4, uid: int) -> ReceivedEmail | None:
    parts = box.uid("FETCH", str(uid), f"(BODY.PEEK[]<0.{_MAX_BYTES}>)")[1]
    raw = next((part[1] for part in parts if isinstance(part, tuple)), None)
    try:
        return parse(raw) if raw else None
    except Exception as error:  # noqa: BLE001  an email may be broken in any way, and must not stop the next ones
        log.info("an email cannot be read: %s", type(error).__name__)
        return None


def parse(raw: bytes) -> ReceivedEmail | None:
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    sender = email.utils.parseaddr(str(mail.get("From", "")))[1].lower()
    body = mail.get_body(("plain",))
    if not sender or body is None:
        return None
    automatic = str(mail.get("Auto-Submitted", "no")).lower() != "no" or bool(mail.get("List-Id"))
    return ReceivedEmail(sender, str(mail.get("Subject", "")), without_quote(str(body.get_content())), automatic)


def without_quote(text: str) -> str:
    """What is new in a reply: everything before its quote."""
    lines = text.splitlines()
    end = next((number for number, line in enumerate(lines) if _QUOTE_START.match(line)), len(lines))
    return "\n".join(lines[:end]).strip()


def _reasons(refused: Any) -> str:
    return "; ".join(f"{address}: {code} {text.decode(errors='replace')}" for address, (code, text) in refused.items())


def _first_words(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69].rsplit(" ", 1)[0] + "…"

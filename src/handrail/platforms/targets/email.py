"""Letters, by an SMTP server."""

from __future__ import annotations

import asyncio
import contextlib
import smtplib
import socket
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any

from ...base.workers import pool
from ...errors import CallTimeout, ConfigError, ToolFailed
from ...types import Unavailable
from ..message import Message, absent, secret

_SECURITY = {"starttls": 587, "tls": 465, "none": 25}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`security` is starttls, tls or none; without encryption no password is sent, but to this machine."""

    host: str
    sender: str
    to: tuple[str, ...]
    port: int | None = None
    security: str = "starttls"
    username: str = ""
    password_variable: str = "SMTP_PASSWORD"

    takes_files = True

    def __post_init__(self) -> None:
        if self.security not in _SECURITY:
            raise ConfigError(f"security must be one of {', '.join(_SECURITY)}, not {self.security!r}")
        if not self.to:
            raise ConfigError("to is empty: name at least one address")
        if self.username and self.security == "none" and self.host not in _LOOPBACK:
            raise ConfigError("a password would be sent without encryption; set security to starttls or tls")

    def check(self) -> Unavailable | None:
        return absent(self.password_variable) if self.username else None

    async def send(self, message: Message) -> dict[str, Any]:
        letter = self._letter(message)
        delivery = _Delivery(self)
        try:
            refused = await asyncio.wrap_future(pool.submit(delivery.run, letter))
        except asyncio.CancelledError:
            delivery.hang_up()
            raise
        except TimeoutError:
            raise CallTimeout(f"the mail server {self.host} did not answer within {_SECONDS:g} s") from None
        except smtplib.SMTPRecipientsRefused as error:
            raise ToolFailed(f"{self.host} refuses every address: {_reasons(error.recipients)}") from None
        except smtplib.SMTPAuthenticationError:
            raise ToolFailed(f"{self.host} refuses the user name or the password; tell the user") from None
        except (OSError, smtplib.SMTPException) as error:  # also of TLS: a certificate that is not trusted
            raise ToolFailed(f"the mail server {self.host} did not take the letter: {error}") from None
        told: dict[str, Any] = {"message_id": letter["Message-ID"]}
        return {**told, "refused": _reasons(refused)} if refused else told

    def _letter(self, message: Message) -> EmailMessage:
        letter = EmailMessage()
        letter["From"], letter["To"] = self.sender, ", ".join(self.to)
        # One line: what follows a line's end would be a header of its own.
        letter["Subject"] = " ".join(message.subject.split()) or _first_words(message.text)
        letter["Date"], letter["Message-ID"] = formatdate(localtime=True), make_msgid(domain=_domain(self.sender))
        letter["Auto-Submitted"] = "auto-generated"
        letter.set_content(message.text)
        for attachment in message.attachments:
            main, _, sub = attachment.mime.partition("/")
            letter.add_attachment(attachment.data, maintype=main, subtype=sub, filename=attachment.name)
        return letter


class _Delivery:
    """One conversation with the server, on a thread. Hanging up ends it from another."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._server: smtplib.SMTP | None = None

    def run(self, letter: EmailMessage) -> dict[str, tuple[int, bytes]]:
        target = self._target
        port = target.port or _SECURITY[target.security]
        context = ssl.create_default_context()
        if target.security == "tls":
            self._server = smtplib.SMTP_SSL(target.host, port, timeout=_SECONDS, context=context)
        else:
            self._server = smtplib.SMTP(target.host, port, timeout=_SECONDS)
        with self._server as server:
            if target.security == "starttls":
                server.starttls(context=context)
            if target.username:
                server.login(target.username, secret(target.password_variable))
            return server.send_message(letter)

    def hang_up(self) -> None:
        sock = self._server.sock if self._server is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _reasons(refused: Any) -> str:
    return "; ".join(
        f"{address}: {code} {text.decode('utf-8', 'replace')}" for address, (code, text) in refused.items()
    )


def _first_words(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69].rsplit(" ", 1)[0] + "…"


def _domain(address: str) -> str:
    return address.rpartition("@")[2].strip("<> ") or "localhost"

"""Letters, by a real SMTP server and a double of an IMAP server."""

from __future__ import annotations

import asyncio
import re
import socketserver
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from email.message import EmailMessage
from typing import Any

import pytest

from handrail.errors import ConfigError, ToolFailed
from handrail.platforms.base import Message, Updates
from handrail.platforms.email import Adapter, Settings, parse, without_quote
from tests.support import PATIENCE_SECONDS

from ...platforms.conftest import Mail, mail  # noqa: F401  a fixture

ADA = "ada@example.org"


class Mailbox:
    """What an IMAP server tells of one mailbox: LOGIN, SELECT, UID SEARCH, UID FETCH, LOGOUT."""

    def __init__(self) -> None:
        self.letters: list[bytes] = [b"From: old@example.org\r\nSubject: old\r\n\r\nold\r\n"]
        mailbox = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("* OK ready")
                for line in self.rfile:
                    tag, _, command = line.decode().strip().partition(" ")
                    if not mailbox.answer(self._say, self.wfile.write, tag, command):
                        return

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.port = self._server.server_address[1]

    def answer(self, say: Callable[[str], None], write: Callable[[bytes], Any], tag: str, command: str) -> bool:
        words = command.upper().split()
        if words[0] == "CAPABILITY":
            say("* CAPABILITY IMAP4rev1")
        elif words[0] == "LOGIN" and "SESAME" not in words[2]:
            say(f"{tag} NO wrong password")
            return True
        elif words[0] in ("SELECT", "EXAMINE"):
            say(f"* {len(self.letters)} EXISTS")
            say("* OK [UIDVALIDITY 7] fine")
        elif words[:2] == ["UID", "SEARCH"]:
            first = int(words[3].partition(":")[0])
            count = len(self.letters)
            # `n:*` has the last one always, also when n is behind it.
            say("* SEARCH " + " ".join(str(uid) for uid in range(min(first, count), count + 1)))
        elif words[:2] == ["UID", "FETCH"]:
            data = self.letters[int(words[2]) - 1]
            say(f"* {words[2]} FETCH (UID {words[2]} BODY[]<0> {{{len(data)}}}")
            write(data + b")\r\n")
        elif words[0] == "LOGOUT":
            say("* BYE")
        say(f"{tag} OK done")
        return words[0] != "LOGOUT"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    made = Mailbox()
    yield made
    made.close()


@pytest.fixture
def adapter(mailbox: Mailbox, mail: Mail, monkeypatch: pytest.MonkeyPatch) -> Adapter:  # noqa: F811  the fixture above
    monkeypatch.setenv("MAIL_PASSWORD", "sesame")
    return Adapter(
        Settings(
            address="agent@example.org",
            imap_host="127.0.0.1",
            smtp_host="127.0.0.1",
            imap_port=mailbox.port,
            smtp_port=mail.port,
            security="none",
            poll_seconds=0.01,
        )
    )


def _letter(text: str, subject: str = "hello", sender: str = ADA, **headers: str) -> bytes:
    letter = EmailMessage()
    letter["From"], letter["Subject"] = sender, subject
    for name, value in headers.items():
        letter[name.replace("_", "-")] = value
    letter.set_content(text)
    return letter.as_bytes()


async def _next_message(news: AsyncIterator[Updates]) -> Message:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for told in news:
            for event in told.events:
                assert isinstance(event, Message)
                return event
    raise AssertionError("nothing came")


def test_only_a_letter_with_the_mark_of_its_sender_is_heard(mailbox: Mailbox, mail: Mail, adapter: Adapter) -> None:  # noqa: F811  the fixture above
    async def talk() -> None:
        await adapter.connect()
        news = aiter(adapter.receive(""))
        assert (await anext(news)).events == []  # what was there before is old
        mailbox.letters.append(b"\xff\xfe broken")
        mailbox.letters.append(_letter("/approve all"))
        while not mail.letters:
            assert (await anext(news)).events == []
        mark = re.search(r"\[handrail [\w.-]+\]", mail.letters[0]["Subject"])
        assert mark
        assert mail.letters[0]["To"] == ADA
        # A mark is its reader's alone.
        mailbox.letters.append(_letter("let me in", f"Re: {mark[0]}", sender="eve@example.org"))
        mailbox.letters.append(_letter("I am away", f"Re: {mark[0]}", Auto_Submitted="auto-replied"))
        mailbox.letters.append(_letter("yes\n\nOn Monday the agent wrote:\n> what?\n", f"Re: {mark[0]}"))
        assert await _next_message(news) == Message(ADA, ADA, "yes", True, True)
        await news.aclose()  # type: ignore[attr-defined]

    asyncio.run(talk())


def test_after_a_restart_only_what_is_new_comes(mailbox: Mailbox, adapter: Adapter) -> None:
    async def talk() -> None:
        await adapter.connect()
        mark = adapter._mark_of(ADA)
        mailbox.letters += [_letter("one", mark), _letter("two", mark)]
        news = aiter(adapter.receive("7:2"))
        assert (await _next_message(news)).text == "two"
        await news.aclose()  # type: ignore[attr-defined]

    asyncio.run(talk())


def test_a_mark_is_for_one_question_and_not_for_ever(mailbox: Mailbox, mail: Mail, adapter: Adapter) -> None:  # noqa: F811  the fixture
    async def talk() -> None:
        await adapter.connect()
        await adapter.send(ADA, "May I?", key="ask-3f9c21ab")
        await adapter.send(ADA, "Hello.", key="x")
        asked, other = (re.search(r"\[handrail [\w.-]+\]", each["Subject"])[0] for each in mail.letters[:2])  # type: ignore[index]
        old = adapter._mark_of(ADA, "3f9c21ab", int(time.time()) - 8 * 86_400)
        forged = [
            asked.replace("3f9c21ab", "ffffffff"),
            other.replace(".-.", ".3f9c21ab."),
            old,
            "[handrail 0123456789abcdef]",
        ]
        mailbox.letters += [_letter("/approve", each) for each in [*forged, other, asked]]
        news = aiter(adapter.receive("7:0"))
        first = await anext(news)
        assert [(each.text, each.question) for each in first.events if isinstance(each, Message)] == [
            ("/approve", ""),
            ("/approve", "3f9c21ab"),
        ]
        await news.aclose()  # type: ignore[attr-defined]

    asyncio.run(talk())


def test_a_wrong_password_is_told_without_it(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "something else")

    async def talk() -> None:
        await adapter.connect()
        with pytest.raises(ToolFailed, match="cannot be read") as caught:
            await anext(aiter(adapter.receive("")))
        assert "something else" not in str(caught.value)

    asyncio.run(talk())


def test_a_password_goes_unencrypted_to_this_machine_only() -> None:
    with pytest.raises(ConfigError, match="without encryption"):
        Settings(address="a@b.c", imap_host="imap.b.c", smtp_host="smtp.b.c", security="none")


def test_what_is_quoted_is_not_said_again() -> None:
    assert without_quote("/deny too risky\r\n\r\n> /approve once\r\n> ...\r\n") == "/deny too risky"
    assert parse(b"Subject: no sender\r\n\r\nx") is None

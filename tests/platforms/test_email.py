"""Letters to a real mail server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.model_tools import handle_function_call
from handrail.types import CancelToken
from tests.support import error_in, takes_less_than, wait_until

from .conftest import Mail, Send

Configure = Callable[..., None]


@pytest.fixture
def boss(target: Configure, mail: Mail) -> Callable[..., None]:
    """The target `boss`, with other settings where a test gives some."""

    def configure(**settings: Any) -> None:
        usual = {"host": mail.host, "port": mail.port, "security": "none", "sender": "Bot <bot@example.org>"}
        target("boss", kind="email", **{**usual, "to": ["boss@example.org"], **settings})

    configure()
    return configure


def test_a_letter_arrives(boss: Configure, mail: Mail, send: Send) -> None:
    answer = send("boss", "All is well.\nGrüße", subject="Report")
    (letter,) = mail.letters
    assert answer["message_id"] == letter["Message-ID"]
    assert (letter["Subject"], letter["From"], letter["To"]) == ("Report", "Bot <bot@example.org>", "boss@example.org")
    assert letter.get_content().splitlines() == ["All is well.", "Grüße"]
    assert letter["Auto-Submitted"] == "auto-generated"


def test_without_a_subject_the_first_words_are_it(boss: Configure, mail: Mail, send: Send) -> None:
    send("boss", "The disk of the build server is nearly full.\n" + "Details follow. " * 20)
    assert mail.letters[0]["Subject"].startswith("The disk of the build server is nearly full.")
    assert len(mail.letters[0]["Subject"]) <= 70


def test_nothing_in_a_subject_becomes_a_header(boss: Configure, mail: Mail, send: Send) -> None:
    assert send("boss", "x", subject="Hi\r\nBcc: everyone@example.org")["sent"] is True
    assert mail.letters[0]["Bcc"] is None
    assert mail.letters[0]["Subject"] == "Hi Bcc: everyone@example.org"


def test_files_go_along_with_their_names_and_types(boss: Configure, mail: Mail, send: Send, tmp_path: Path) -> None:
    (tmp_path / "plan.pdf").write_bytes(b"%PDF-1.7 \x00\xff")
    send("boss", attachments=[str(tmp_path / "plan.pdf")])
    (part,) = mail.letters[0].iter_attachments()
    assert (part.get_filename(), part.get_content_type()) == ("plan.pdf", "application/pdf")
    assert part.get_content() == b"%PDF-1.7 \x00\xff"


def test_a_file_that_is_not_there_sends_nothing(boss: Configure, mail: Mail, send: Send, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("x")
    error = send("boss", attachments=[str(tmp_path / "reports.txt")])
    assert "report.txt" in error["similar"]
    assert mail.letters == []


def test_a_password_is_used(boss: Configure, mail: Mail, send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", "sesame")
    boss(username="bot")
    assert send("boss")["sent"] is True
    monkeypatch.setenv("SMTP_PASSWORD", "barley")
    assert "refuses the user name or the password" in send("boss")["error"]
    assert len(mail.letters) == 1


def test_a_password_never_goes_unencrypted_to_another_machine(boss: Configure, send: Send) -> None:
    boss(host="mail.example.org", username="bot")
    assert "without encryption" in send("boss")["error"]


def test_encryption_that_the_server_does_not_have_is_not_left_out(boss: Configure, mail: Mail, send: Send) -> None:
    boss(security="starttls")
    assert "STARTTLS" in send("boss")["error"]
    assert mail.letters == []


def test_an_encrypted_letter_arrives(
    target: Configure, secure_mail: tuple[str, Mail], certificate: Path, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    security, mail = secure_mail
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("SMTP_PASSWORD", "sesame")
    settings = {"host": mail.host, "port": mail.port, "security": security, "username": "bot"}
    target("boss", kind="email", sender="bot@example.org", to=["boss@example.org"], **settings)
    assert send("boss", "psst")["sent"] is True
    assert mail.letters[0].get_content().strip() == "psst"


def test_a_server_whom_nobody_vouches_for_gets_nothing(
    target: Configure, secure_mail: tuple[str, Mail], send: Send
) -> None:
    security, mail = secure_mail
    target("boss", kind="email", sender="b@c", to=["b@c"], host=mail.host, port=mail.port, security=security)
    assert "certificate" in send("boss")["error"].lower()
    assert mail.letters == []


def test_addresses_that_are_refused_are_named(boss: Configure, mail: Mail, send: Send) -> None:
    boss(to=["boss@example.org", "nobody@example.org"])
    assert "nobody@example.org: 550 no such person" in send("boss")["refused"]
    assert len(mail.letters) == 1
    boss(to=["nobody@example.org"])
    assert "refuses every address" in send("boss")["error"]


def test_a_server_that_is_not_there_is_said(boss: Configure, send: Send) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        boss(port=taken.getsockname()[1])
        assert "did not accept the email" in send("boss")["error"]


def test_a_server_that_says_nothing_can_be_cancelled(boss: Configure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        boss(port=silent.getsockname()[1])
        cancel, outcomes = CancelToken(), []
        arguments = {"target": "boss", "message": "x"}
        thread = threading.Thread(
            target=lambda: outcomes.append(handle_function_call("send_message", arguments, cancel=cancel))
        )
        thread.start()
        connection, _ = silent.accept()
        with connection, takes_less_than(30):
            cancel.cancel("enough")
            thread.join()
        assert error_in(outcomes[0])["error_type"] == "cancelled"
        wait_until(lambda: not [each for each in threading.enumerate() if "handrail-" in each.name and each is thread])

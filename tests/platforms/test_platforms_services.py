"""Messages to services of others, at their wire: webhooks, Slack, Discord, Telegram, and what Apprise knows."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.model_tools import handle_function_call
from handrail.types import CancelToken
from tests.support import error_in, takes_less_than, wait_until

from .conftest import Posted, Send

Configure = Callable[..., None]


@pytest.fixture
def hook(target: Configure, posted: Posted) -> None:
    target("hook", kind="webhook", url=f"{posted.url}/in")


class TestWebhook:
    def test_it_gets_one_object_with_an_id(self, hook: None, posted: Posted, send: Send) -> None:
        answer = send("hook", "done", subject="Build")
        (body,) = posted.bodies()
        assert (body["text"], body["subject"], body["id"]) == ("done", "Build", answer["id"])
        assert posted.requests[0]["headers"]["idempotency-key"] == answer["id"]

    def test_it_can_be_signed(
        self, target: Configure, posted: Posted, send: Send, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOOK_SECRET", "shared")
        target("signed", kind="webhook", url=posted.url, secret_variable="HOOK_SECRET", headers={"x-team": "a"})
        send("signed")
        (request,) = posted.requests
        expected = hmac.new(b"shared", request["body"], hashlib.sha256).hexdigest()
        assert request["headers"]["x-handrail-signature"] == f"sha256={expected}"
        assert request["headers"]["x-team"] == "a"

    def test_a_redirect_is_not_followed(self, hook: None, posted: Posted, send: Send) -> None:
        posted.answers = [(302, {})]
        assert "redirects are not followed" in send("hook")["error"]

    def test_what_it_says_of_a_failure_is_passed_on(self, hook: None, posted: Posted, send: Send) -> None:
        posted.answers = [(500, {"error": {"message": "the queue is full"}})]
        error = send("hook")
        assert "answers 500: the queue is full" in error["error"]
        assert error["status"] == 500
        assert len(posted.requests) == 1, "a message that may have arrived is not sent twice"

    def test_it_is_waited_for_when_it_says_so(self, hook: None, posted: Posted, send: Send) -> None:
        posted.answers = [(429, {"retry_after_ms": 1}), (429, {"retry_after": 0.001}), (200, {})]
        assert send("hook")["sent"] is True
        assert len(posted.requests) == 3

    def test_a_wait_that_is_too_long_is_said(self, hook: None, posted: Posted, send: Send) -> None:
        posted.answers = [(429, {"retry_after": 3600, "message": "slow down"})]
        with takes_less_than(30):
            assert "answers 429: slow down" in send("hook")["error"]

    def test_an_endless_answer_is_cut(self, hook: None, posted: Posted, send: Send) -> None:
        posted.answers = [(200, b"x" * 2_000_000)]
        assert "more than" in send("hook")["error"]

    def test_a_call_that_waits_can_be_cancelled(self, hook: None, posted: Posted) -> None:
        posted.held = threading.Event()
        cancel, outcomes = CancelToken(), []
        arguments = {"target": "hook", "message": "x"}
        thread = threading.Thread(
            target=lambda: outcomes.append(handle_function_call("send_message", arguments, cancel=cancel))
        )
        thread.start()
        wait_until(lambda: posted.requests)
        with takes_less_than(30):
            cancel.cancel()
            thread.join()
        assert error_in(outcomes[0])["error_type"] == "cancelled"


class TestSlack:
    @pytest.fixture(autouse=True)
    def _channel(self, target: Configure, posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLACK_WEBHOOK_URL", f"{posted.url}/services/T0/B0/key")
        target("team", kind="slack")

    def test_nothing_in_the_text_calls_the_channel(self, posted: Posted, send: Send) -> None:
        assert send("team", "<!channel> 1 < 2 & 3")["sent"] is True
        assert posted.bodies() == [{"text": "&lt;!channel&gt; 1 &lt; 2 &amp; 3"}]
        assert posted.requests[0]["path"] == "/services/T0/B0/key"

    def test_files_are_refused_before_anything_is_sent(self, posted: Posted, send: Send, tmp_path: Path) -> None:
        assert "takes no files" in send("team", attachments=[str(tmp_path)])["error"]
        assert posted.requests == []


class TestDiscord:
    @pytest.fixture(autouse=True)
    def _channel(self, target: Configure, posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DISCORD_WEBHOOK_URL", f"{posted.url}/api/webhooks/1/key")
        target("team", kind="discord")

    def test_a_long_text_comes_in_parts_and_calls_nobody(self, posted: Posted, send: Send) -> None:
        posted.answers = [(200, {"id": "1"}), (200, {"id": "2"})]
        text = "@everyone " + "word " * 500
        assert send("team", text)["message_ids"] == ["1", "2"]
        bodies = posted.bodies()
        assert "".join(body["content"] for body in bodies) == text
        assert all(len(body["content"]) <= 2000 and body["allowed_mentions"] == {"parse": []} for body in bodies)

    def test_files_go_with_the_last_part(self, posted: Posted, send: Send, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("content of a")
        posted.answers = [(200, {"id": "1"})]
        send("team", "see", attachments=[str(tmp_path / "a.txt")])
        (request,) = posted.requests
        assert request["headers"]["content-type"].startswith("multipart/form-data")
        assert b'name="files[0]"; filename="a.txt"' in request["body"]
        assert b"content of a" in request["body"]


class TestTelegram:
    @pytest.fixture(autouse=True)
    def _chat(self, target: Configure, posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "12345678:AAH-the-key-of-the-bot-0123456789abcdef")
        target("me", kind="telegram", chat="42", server=posted.url)

    def test_text_and_files_go_to_the_chat(self, posted: Posted, send: Send, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("content of a")
        posted.answers = [(200, {"ok": True, "result": {"message_id": n}}) for n in (1, 2)]
        assert send("me", "*plain* <b>text</b>", attachments=[str(tmp_path / "a.txt")])["message_ids"] == [1, 2]
        said, file = posted.requests
        assert said["path"].endswith("/sendMessage")
        assert json.loads(said["body"]) == {"chat_id": "42", "text": "*plain* <b>text</b>"}
        assert file["path"].endswith("/sendDocument")

    def test_a_failure_is_explained_without_the_key(self, posted: Posted, send: Send) -> None:
        posted.answers = [(400, {"ok": False, "description": "Bad Request: chat not found"})]
        error = send("me")["error"]
        assert "chat not found" in error
        assert "AAH" not in error


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its plugins import what Python will not have for ever
class TestApprise:
    def test_what_apprise_knows_can_be_a_target(
        self, target: Configure, posted: Posted, send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NOTIFY_URL", posted.url.replace("http://", "json://"))
        (tmp_path / "a.txt").write_text("content of a")
        target("phone", kind="apprise", url_variable="NOTIFY_URL")
        assert send("phone", "ring", subject="Hello", attachments=[str(tmp_path / "a.txt")])["sent"] is True
        (body,) = posted.bodies()
        assert (body["title"], body["message"]) == ("Hello", "ring")
        assert body["attachments"][0]["filename"] == "a.txt"

    @pytest.mark.parametrize(
        ("url", "why"), [("nonsense", "does not hold an address"), ("json://127.0.0.1:9", "did not accept")]
    )
    def test_one_that_cannot_be_used_is_said(
        self, target: Configure, send: Send, monkeypatch: pytest.MonkeyPatch, url: str, why: str
    ) -> None:
        monkeypatch.setenv("NOTIFY_URL", url)
        target("phone", kind="apprise", url_variable="NOTIFY_URL")
        assert why in send("phone")["error"]

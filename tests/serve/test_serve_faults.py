"""What goes wrong around the server: late, doubled and forged answers, endless bodies, full disks, kills."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.protocols import ModelReply
from handrail.testing.model_server import ModelServer

from .. import fork_server
from ..services.small_disk import small_disk
from ..support import wait_until
from .conftest import TOKEN, Server, events_of, with_model

DANGEROUS = "rm -rf ~/important"
MEGABYTE = 1 << 20
PATIENCE_SECONDS = 60


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


def _ask(server: Server, pool: ThreadPoolExecutor, command: str = DANGEROUS) -> tuple[Future[Any], dict[str, Any]]:
    """A call that waits, and its question."""
    asked = pool.submit(server.call, "terminal", command=command)
    wait_until(server.waiting, timeout=PATIENCE_SECONDS)
    [question] = server.waiting()
    return asked, question


def _answer(server: Server, question: dict[str, Any], decision: str) -> httpx.Response:
    return server.client.post(f"/v1/approvals/{question['id']}", json={"decision": decision})


class TestAnswers:
    def test_an_answer_that_is_sent_again_allows_nothing_more(self, server: Server, pool: ThreadPoolExecutor) -> None:
        asked, question = _ask(server, pool)
        assert _answer(server, question, "once").json()["holds"]
        assert asked.result()["exit_code"] == 0
        assert not _answer(server, question, "once").json()["holds"]
        again, other = _ask(server, pool)  # the same command is a question of its own
        assert other["id"] != question["id"]
        assert not _answer(server, question, "once").json()["holds"]
        assert [each["id"] for each in server.waiting()] == [other["id"]]
        assert _answer(server, other, "deny").json()["holds"]
        assert again.result()["error_type"] == "denied"

    def test_a_forged_answer_is_refused_and_the_question_waits_on(
        self, server: Server, pool: ThreadPoolExecutor
    ) -> None:
        asked, question = _ask(server, pool)
        path, yes = f"/v1/approvals/{question['id']}", {"decision": "always"}
        watcher = server.as_(server.client.post("/v1/tokens", json={"name": "w", "role": "watch"}).json()["token"])
        forged = [
            server.as_().post(path, json=yes),
            server.as_("x" * 43).post(path, json=yes),
            watcher.post(path, json=yes),
            server.client.post(path, json=yes, headers={"origin": "https://evil.example"}),
            server.client.post(f"/v1/approvals/{question['id'][::-1]}", json=yes),
            server.client.post("/v1/approvals/%25", json=yes),
            server.client.post(path, json={"decision": "once", "by": "somebody else"}),
        ]
        assert [each.status_code for each in forged] == [401, 401, 403, 403, 404, 404, 422]
        assert [each["id"] for each in server.waiting()] == [question["id"]]
        _answer(server, question, "deny")
        assert asked.result()["error_type"] == "denied"

    def test_a_yes_and_a_no_at_the_same_moment_are_one_answer(self, server: Server, pool: ThreadPoolExecutor) -> None:
        for number in range(5):
            folder = server.cwd / f"folder-{number}"
            folder.mkdir()
            asked, question = _ask(server, pool, f"rm -rf ~/folder-{number}")
            given = ("once", "deny", "once", "deny")
            answers = list(pool.map(lambda each, about=question: _answer(server, about, each).json(), given))
            held = [decision for decision, answer in zip(given, answers, strict=True) if answer["holds"]]
            assert len(held) == 1
            assert {answer["request"]["decision"] for answer in answers} == set(held)
            asked.result()
            assert folder.exists() == (held == ["deny"])

    def test_an_answer_after_the_time_is_told_so_and_changes_nothing(self, server: Server) -> None:
        important = server.cwd / "kept"
        important.mkdir()
        hasty = {**server.env, "HANDRAIL_APPROVALS_HEADLESS": "queue", "HANDRAIL_APPROVALS_TIMEOUT": "1"}
        del hasty["HANDRAIL_SERVE_TOKEN"]
        words = ["-m", "handrail", "call", "terminal", f"command=rm -rf {important}"]
        with server.client.stream("GET", "/v1/events") as stream:
            told = events_of(stream)
            next(told)
            # A runtime of its own: its questions are seen here, too.
            ran = fork_server.run(*words, env=hasty, cwd=server.cwd)
            seen = [next(data for kind, data, _ in told if kind == f"approval.{which}") for which in ("asked", "over")]
        assert "nobody answered within 1 s" in ran.stdout + ran.stderr
        assert [each["state"] for each in seen] == ["pending", "expired"]
        late = _answer(server, seen[0], "once").json()
        assert (late["holds"], late["request"]["state"]) == (False, "expired")
        assert important.exists()


class TestBodies:
    @pytest.mark.parametrize("path", ["/v1/calls", "/mcp", "/v1/login"])
    def test_a_hundred_megabytes_are_refused_before_they_are_sent(self, server: Server, path: str) -> None:
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nauthorization: Bearer {TOKEN}\r\n"
        kind = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as line:
            line.sendall(f"{head}{kind}content-length: {100 * MEGABYTE}\r\n\r\n{{".encode())
            assert line.recv(1000).startswith(b"HTTP/1.1 413")

    @pytest.mark.parametrize("path", ["/v1/calls", "/mcp"])
    def test_a_body_without_an_end_is_not_kept(self, server: Server, path: str) -> None:
        server.client.post(path, content=b"{}")
        before = _memory(server)

        def endless() -> Iterator[bytes]:
            for _ in range(100):
                yield b" " * MEGABYTE

        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        assert server.client.post(path, content=endless(), headers=headers).status_code == 413
        assert _memory(server) - before < 60

    def test_a_body_that_breaks_off_is_nobodys_fault(self, server: Server) -> None:
        head = f"POST /v1/calls HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\nauthorization: Bearer {TOKEN}\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as line:
            line.sendall(f"{head}content-length: 100\r\n\r\n{{".encode())
        wait_until(lambda: server.client.get("/v1/audit").json()["audit"][-1:], timeout=30)  # it may be empty at first
        wait_until(lambda: server.client.get("/v1/audit").json()["audit"][-1]["status"] == 400, timeout=30)


def _memory(server: Server) -> int:
    """In megabytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024  # type: ignore[index]


class TestManyConnections:
    FILES = 150

    @pytest.fixture
    def poor_server(self, tmp_path: Path) -> Iterator[Server]:
        """It may open few files."""
        (tmp_path / "work").mkdir()
        made = Server(tmp_path / "served", tmp_path / "work", start=self._start)
        yield made
        made.stop()

    def _start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["prlimit", f"--nofile={self.FILES}", sys.executable, *arguments], **options)

    def test_they_take_no_files_from_the_calls_and_keep_nobody_out(self, poor_server: Server) -> None:
        address = ("127.0.0.1", poor_server.port)
        lines = [socket.create_connection(address, timeout=PATIENCE_SECONDS) for _ in range(4 * self.FILES)]
        try:
            # One that was there before, and one that comes now.
            assert poor_server.call("terminal", command="echo hi")["output"] == "hi\n"
            assert poor_server.as_(TOKEN).get("/v1/tools").status_code == 200
            assert len(os.listdir(f"/proc/{poor_server.process.pid}/fd")) < self.FILES
        finally:
            for line in lines:
                line.close()


class TestFullDisk:
    @pytest.fixture
    def disk(self, tmp_path: Path) -> Iterator[Path]:
        """A folder of some megabytes."""
        with small_disk(tmp_path, "8m") as disk:
            yield disk

    def test_it_is_said_nothing_is_allowed_and_all_goes_on_when_there_is_room(
        self, disk: Path, tmp_path: Path, pool: ThreadPoolExecutor
    ) -> None:
        important = tmp_path / "work" / "important"
        important.mkdir(parents=True)
        server = Server(disk / "served", tmp_path / "work")
        try:
            asked, question = _ask(server, pool)
            filler = disk / "filler"
            _fill(filler)
            assert server.client.get("/health").status_code == 200
            assert [each["id"] for each in server.waiting()] == [question["id"]]
            refused = _answer(server, question, "once")
            assert (refused.status_code, refused.json()["error_type"]) == (503, "store")
            assert "make room on its disk" in refused.json()["error"]
            assert important.exists()
            unaudited = server.client.post(
                "/v1/calls", json={"tool": "terminal", "arguments": {"command": "touch ran"}}
            )
            assert (unaudited.status_code, unaudited.json()["error_type"]) == (503, "store")
            over_mcp = server.client.post("/mcp", json=_MCP_CALL, headers=_MCP_HEADERS)
            assert (over_mcp.status_code, over_mcp.json()["error_type"]) == (503, "store")
            assert not (tmp_path / "work" / "ran").exists()
            filler.unlink()
            assert _answer(server, question, "once").json()["holds"]
            assert asked.result()["exit_code"] == 0
            assert not important.exists()
            assert server.client.post("/mcp", json=_MCP_CALL, headers=_MCP_HEADERS).status_code != 503
        finally:
            server.stop()


_MCP_CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "terminal", "arguments": {"command": "touch ran"}},
}
_MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (MEGABYTE, 4096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def test_a_killed_server_comes_back_with_its_questions_processes_and_sessions(
    tmp_path: Path, pool: ThreadPoolExecutor
) -> None:
    script = [ModelReply("It is noted."), ModelReply("It is still noted.")]
    with ModelServer(script) as model, with_model(tmp_path, model) as server:
        session = _say(server, "/v1/sessions", "Remember the zebra.")[0][1]["id"]
        process = server.call("terminal", command="echo before; read x; echo after $x", background=True)["session_id"]
        wait_until(lambda: "before" in _log(server, process), timeout=PATIENCE_SECONDS)
        asked = pool.submit(lambda: _or_gone(server))
        wait_until(server.waiting, timeout=PATIENCE_SECONDS)
        [before] = server.waiting()
        server.stop(signal.SIGKILL)
        asked.result()
        server.start()

        [question] = server.waiting()
        assert (question["id"], question["is_waiting"]) == (before["id"], False)
        assert _answer(server, question, "once").json()["holds"]
        # The same call again needs no second answer.
        assert server.call("terminal", command=DANGEROUS)["exit_code"] == 0

        assert server.client.get(f"/v1/processes/{process}").json()["state"] == "running"
        server.client.post(f"/v1/processes/{process}/input", json={"text": "all", "keys": ["ENTER"]})
        wait_until(lambda: "after all" in _log(server, process), timeout=PATIENCE_SECONDS)

        assert [each["id"] for each in server.client.get("/v1/sessions").json()["sessions"]] == [session]
        assert _say(server, f"/v1/sessions/{session}/turns", "Still?")[-1][1]["answer"] == "It is still noted."


def _say(server: Server, path: str, text: str) -> list[tuple[str, Any, int | None]]:
    with server.client.stream("POST", path, json={"text": text}) as answer:
        return list(events_of(answer))


def _log(server: Server, process: str) -> str:
    text: str = server.client.get(f"/v1/processes/{process}/log").json()["text"]
    return text


def _or_gone(server: Server) -> None:
    try:
        server.call("terminal", command=DANGEROUS)
    except httpx.TransportError:
        return


def test_a_clock_that_is_set_lets_nothing_through_and_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from handrail.protocols import Answer, ApprovalRequest, Decision
    from handrail.serve.event_bus import Bus
    from handrail.serve.shared_state import WaitingRequests
    from handrail.store.approvals import ApprovalStore, State

    store, bus, real, jump = ApprovalStore(tmp_path / "approvals.db"), Bus(), time.time, [0.0]
    monkeypatch.setattr("time.time", lambda: real() + jump[0])
    watching, begin = WaitingRequests(store, bus), bus.last_id

    def ask(text: str) -> str:
        request = ApprovalRequest(
            "terminal", {}, "why", text=text, expires_at=time.time() + 300, offers=tuple(Decision)
        )
        return store.ask(request, fingerprint=text).request.id

    early = ask("one")
    watching.poll()
    jump[0] = -3600  # what waits is still there, and its answer holds
    watching.poll()
    assert store.answer(early, Answer(Decision.ONCE, "me")) is None
    watching.poll()
    late = ask("two")
    watching.poll()
    jump[0] = 3600  # nobody can tell any more that it is not too late, so that it is
    watching.poll()
    before = store.answer(late, Answer(Decision.ONCE, "me"))
    assert before is not None
    assert before.state is State.EXPIRED
    told = [(event.kind, event.data["id"], event.data["state"]) for event in bus.after(begin)]
    assert told == [
        ("approval.asked", early, "pending"),
        ("approval.over", early, "answered"),
        ("approval.asked", late, "pending"),
        ("approval.over", late, "expired"),
    ]
    store.close()

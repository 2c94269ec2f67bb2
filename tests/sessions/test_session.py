"""The session object: its tools, calls, previews and grants, and that it closes what it opened."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import handrail
from handrail import Config, Handrail
from handrail.approval import Answer, ApprovalRequest, Decision
from handrail.errors import Denied, HandrailError, UnknownToolset
from handrail.plugins.hook_specs import Ask
from handrail.protocols import ModelReply
from handrail.runtime.provider_formats import Format
from handrail.settings.sections import ApprovalsConfig
from handrail.store.approvals import ApprovalStore
from handrail.testing import RecordingApprover, ScriptedModel
from handrail.testing import call as model_call
from tests.support import PATIENCE_SECONDS, add, call


@pytest.fixture
def app() -> Iterator[Handrail]:
    with Handrail(Config()) as made:
        yield made


async def test_call_returns_text_value_and_changes(app: Handrail, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    async with handrail.session(app, cwd=tmp_path) as s:
        written = await s.call("write_file", {"path": "a.txt", "content": "two\n"})
        assert not written.is_error
        assert written.data["bytes_written"] == 4
        assert written.changes == ((str(tmp_path / "a.txt"), "one\n", "two\n"),)
        patched = await s.call("patch", {"path": "a.txt", "old_string": "two", "new_string": "three"})
        assert patched.changes == ((str(tmp_path / "a.txt"), "two\n", "three\n"),)
        missing = await s.call("read_file", {"path": "missing.txt"})
        assert missing.is_error
        assert missing.changes == ()
        assert missing.text == json.dumps(missing.data, ensure_ascii=False)


async def test_stdout_and_stderr_of_a_command_can_be_had_apart(app: Handrail, tmp_path: Path) -> None:
    async with handrail.session(app, cwd=tmp_path) as s:
        apart = await s.call("terminal", {"command": "echo out; ls missing", "separate_stderr": True})
        assert (apart.stdout, "missing" in apart.stderr, apart.data["exit_code"]) == ("out\n", True, 2)
        together = await s.call("terminal", {"command": "echo out; echo err >&2"})
        assert (together.stdout, together.stderr) == ("out\nerr\n", "")


async def test_tools_are_those_of_the_toolsets_and_no_other_can_be_called(app: Handrail) -> None:
    async with handrail.session(app, toolsets=["file"]) as s:
        assert {tool["function"]["name"] for tool in s.tools()} >= {"read_file", "write_file"}
        assert (await s.call("terminal", {"command": "true"})).error_type == "unknown_tool"
        for provider in get_args(Format):
            assert "read_file" in json.dumps(s.tools(provider))


def test_unknown_toolset_is_an_error_when_the_session_is_opened(app: Handrail) -> None:
    with pytest.raises(UnknownToolset), handrail.session(app, toolsets=["fiel"]):
        pass


def test_unknown_mode_is_an_error(app: Handrail) -> None:
    with pytest.raises(HandrailError, match="manual, smart, off"):
        handrail.session(app, mode="yolo")


def read_call(path: Path) -> dict[str, Any]:
    return {"path": str(path)}


async def test_answers_have_the_format_that_the_calls_had(app: Handrail, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello")
    args = read_call(path)
    async with handrail.session(app) as s:
        chat = await s.run({"role": "assistant", "tool_calls": [call("read_file", "c1", **args)]})
        assert [(each["role"], each["tool_call_id"]) for each in chat] == [("tool", "c1")]
        item = {"type": "function_call", "call_id": "c2", "name": "read_file", "arguments": json.dumps(args)}
        responses = await s.run({"output": [{"type": "reasoning", "id": "r"}, item]})
        assert [(each["type"], each["call_id"]) for each in responses] == [("function_call_output", "c2")]
        assert "hello" in responses[0]["output"]
        used = {"type": "tool_use", "id": "c3", "name": "read_file", "input": {"path": str(tmp_path / "none")}}
        anthropic = await s.run({"role": "assistant", "content": [{"type": "text", "text": "I look."}, used]})
        assert anthropic[0]["role"] == "user"
        assert anthropic[0]["content"][0]["tool_use_id"] == "c3"
        assert anthropic[0]["content"][0]["is_error"] is True
        part = {"functionCall": {"name": "read_file", "args": args}}
        gemini = await s.run({"role": "model", "parts": [{"text": "I look."}, part, part]})
        found = [each["functionResponse"] for each in gemini[0]["parts"]]
        assert [each["name"] for each in found] == ["read_file", "read_file"]
        assert found[0]["response"]["content"] == "hello"
        mcp = await s.run({"method": "tools/call", "params": {"name": "read_file", "arguments": args}})
        assert mcp[0]["isError"] is False
        assert "hello" in mcp[0]["content"][0]["text"]


async def test_preview_runs_nothing_and_its_answer_is_bound_to_it(app: Handrail, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    remove = {"command": "rm -rf build"}
    async with handrail.session(app, cwd=tmp_path) as s:
        assert await s.preview("terminal", {"command": "ls"}) is None
        assert isinstance(await s.preview("terminal", {"command": "rm -rf /"}), Denied)
        asked = await s.preview("terminal", remove)
        assert isinstance(asked, ApprovalRequest)
        assert (tmp_path / "build").exists()
        other = await s.call("terminal", {"command": "rm -rf ."}, answered=asked.answer(Decision.ONCE))
        assert other.error_type == "denied"
        assert (await s.call("terminal", remove, answered=asked.answer(Decision.DENY))).error_type == "denied"
        assert (tmp_path / "build").exists()
        assert not (await s.call("terminal", remove, answered=asked.answer(Decision.ONCE, by="me"))).is_error
        assert not (tmp_path / "build").exists()
        assert isinstance(await s.preview("terminal", remove), ApprovalRequest)  # a yes for once


async def test_an_answer_without_fingerprint_holds_for_the_call_that_was_previewed(
    app: Handrail, tmp_path: Path
) -> None:
    remove = {"command": f"rm -rf {tmp_path}/x"}
    async with handrail.session(app, cwd=tmp_path) as s:
        assert (await s.call("terminal", remove, answered=Answer(Decision.ONCE))).error_type == "denied"
        await s.preview("terminal", remove)
        assert not (await s.call("terminal", remove, answered=Answer(Decision.ONCE))).is_error


async def test_an_answer_holds_in_a_later_session_of_the_same_id(tmp_path: Path) -> None:
    remove = {"command": "rm -rf x"}
    async with handrail.session(config=Config(), id="s1", cwd=tmp_path) as s:
        asked = await s.preview("terminal", remove)
    assert isinstance(asked, ApprovalRequest)
    async with handrail.session(config=Config(), id="s2", cwd=tmp_path) as s:
        assert (await s.call("terminal", remove, answered=asked.answer(Decision.ONCE))).error_type == "denied"
    async with handrail.session(config=Config(), id="s1", cwd=tmp_path) as s:
        assert not (await s.call("terminal", remove, answered=asked.answer(Decision.ONCE))).is_error


async def test_an_answer_does_not_hold_after_what_it_changes_has_changed(tmp_path: Path) -> None:
    file = tmp_path / ".bashrc"
    file.write_text("a\n")
    write = {"path": str(file), "content": "b\n"}
    config = Config(approvals=ApprovalsConfig(ask_tools=("write_file",)))
    async with handrail.session(config=config, cwd=tmp_path) as s:
        asked = await s.preview("write_file", write)
        assert isinstance(asked, ApprovalRequest)
        file.write_text("somebody else's\n")
        assert (await s.call("write_file", write, answered=asked.answer(Decision.ONCE))).error_type == "denied"
        assert file.read_text() == "somebody else's\n"


async def test_preview_asks_the_hooks_and_names_each_question_in_turn(app: Handrail, tmp_path: Path) -> None:
    app.hooks.register_hook("pre_tool_call", lambda tool_name: Ask("a hook asks"))
    remove = {"command": "rm -rf x"}
    async with handrail.session(app, cwd=tmp_path) as s:
        first = await s.preview("terminal", remove)
        assert isinstance(first, ApprovalRequest)
        assert "a hook asks" in first.reason
        answers = [first.answer(Decision.ONCE)]
        second = await s.preview("terminal", remove, answered=answers)
        assert isinstance(second, ApprovalRequest)
        assert second.fingerprint != first.fingerprint
        answers.append(second.answer(Decision.ONCE))
        assert await s.preview("terminal", remove, answered=answers) is None
        assert not (await s.call("terminal", remove, answered=answers)).is_error


async def test_preview_counts_no_use_of_a_grant(app: Handrail, tmp_path: Path) -> None:
    yes = RecordingApprover([Answer(Decision.TASK, uses=1)])
    remove = {"command": "rm -rf x"}
    async with handrail.session(app, cwd=tmp_path, approver=yes) as s:
        assert not (await s.call("terminal", remove)).is_error
        assert [await s.preview("terminal", remove) for _ in range(3)] == [None] * 3
        assert not (await s.call("terminal", remove)).is_error
        assert isinstance(await s.preview("terminal", remove), ApprovalRequest)


async def test_each_session_has_its_own_approver_and_grants(app: Handrail, tmp_path: Path) -> None:
    yes, no = RecordingApprover([Decision.SESSION]), RecordingApprover([Decision.DENY])
    remove = {"command": "rm -rf x"}
    async with (
        handrail.session(app, cwd=tmp_path, approver=yes) as one,
        handrail.session(app, cwd=tmp_path, approver=no) as other,
    ):
        assert not (await one.call("terminal", remove)).is_error
        assert (await other.call("terminal", remove)).error_type == "denied"
        assert not (await one.call("terminal", remove)).is_error
        assert len(yes.requests) == len(no.requests) == 1
    assert app.gate.store.grants.all() == []


async def test_each_session_has_its_own_mode(app: Handrail, tmp_path: Path) -> None:
    remove = {"command": "rm -rf x"}
    async with (
        handrail.session(app, cwd=tmp_path, mode="off") as free,
        handrail.session(app, cwd=tmp_path) as careful,
    ):
        assert not (await free.call("terminal", remove)).is_error
        assert (await careful.call("terminal", remove)).error_type == "denied"
        assert (await free.call("terminal", {"command": "rm -rf /"})).error_type == "denied"


def test_no_mode_of_a_session_lifts_the_rules_of_an_unattended_program(app: Handrail, tmp_path: Path) -> None:
    app.gate.settings.leave_unattended()
    with handrail.session(app, cwd=tmp_path, mode="off") as s:
        assert s.call("terminal", {"command": "rm -rf x"}).error_type == "denied"


async def test_each_session_has_its_own_shell(app: Handrail, tmp_path: Path) -> None:
    async with handrail.session(app, cwd=tmp_path) as one, handrail.session(app, cwd=tmp_path) as other:
        await one.call("terminal", {"command": "mine=1; mkdir -p sub; cd sub"})
        found = await other.call("terminal", {"command": "echo ${mine:-none} $PWD"})
        assert found.data["output"].split() == ["none", str(tmp_path)]


def test_the_sync_twin_does_the_same(app: Handrail, tmp_path: Path) -> None:
    with handrail.session(app, cwd=tmp_path, approver=lambda request: Decision.ONCE) as s:
        assert s.call("write_file", {"path": "a", "content": "x"}).changes[0].after == "x"
        assert isinstance(s.preview("terminal", {"command": "rm -rf a"}), ApprovalRequest)
        assert not s.call("terminal", {"command": "rm -rf a"}).is_error
        answers = s.run([call("read_file", "c1", path="a")])
        assert answers[0]["tool_call_id"] == "c1"


async def test_an_approver_may_be_an_async_function(app: Handrail, tmp_path: Path) -> None:
    async def ask(request: ApprovalRequest) -> Decision:
        await asyncio.sleep(0)
        assert request.tool_call_id == "c9"
        return Decision.ONCE

    asked: list[ApprovalRequest] = []
    async with handrail.session(app, cwd=tmp_path, approver=ask, on_question=asked.append) as s:
        assert not (await s.call("terminal", {"command": "rm -rf a"}, tool_call_id="c9")).is_error
    assert [request.tool_call_id for request in asked] == ["c9"]


@pytest.mark.parametrize("raised", [StopIteration, KeyboardInterrupt, SystemExit, GeneratorExit, ValueError])
async def test_an_approver_that_raises_anything_is_a_no(
    app: Handrail, tmp_path: Path, raised: type[BaseException]
) -> None:
    def ask(request: ApprovalRequest) -> Decision:
        raise raised

    async with handrail.session(app, cwd=tmp_path, approver=ask) as s:
        result = await asyncio.wait_for(s.call("terminal", {"command": "rm -rf a"}), PATIENCE_SECONDS)
    assert result.error_type == "denied"


async def test_closing_ends_what_runs_and_what_was_left_running(app: Handrail, tmp_path: Path) -> None:
    never: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()

    async def ask(request: ApprovalRequest) -> Decision:
        return await never

    waits = asyncio.Event()
    async with handrail.session(app, cwd=tmp_path, approver=ask, on_question=lambda _: waits.set()) as s:
        started = await s.call("terminal", {"command": "sleep 4711", "background": True})
        running = asyncio.ensure_future(s.call("terminal", {"command": "sleep 4712"}))
        asking = asyncio.ensure_future(s.call("write_file", {"path": "~/.bashrc", "content": "x"}))
        await waits.wait()
        process = app.processes.get(started.data["session_id"])
    assert (await running).is_error
    assert (await asking).error_type == "cancelled"
    assert process.status().state.value != "running"
    assert app.environments.peek(s.id) is None
    with pytest.raises(HandrailError, match="over"):
        await s.call("read_file", {"path": "a"})


async def test_closing_ends_many_commands_without_a_word_of_the_loop(app: Handrail, tmp_path: Path) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
    async with handrail.session(app, cwd=tmp_path) as s:
        os.mkfifo(tmp_path / "begun")
        running = [asyncio.ensure_future(s.call("terminal", {"command": "echo > begun; sleep 4713"})) for _ in range(8)]
        await asyncio.to_thread((tmp_path / "begun").read_text)
    assert all(result.is_error for result in await asyncio.gather(*running))
    running.clear()
    gc.collect()
    assert complaints == []


async def test_an_error_or_a_cancellation_inside_closes_it_too(app: Handrail, tmp_path: Path) -> None:
    opened: list[str] = []
    is_open = asyncio.Event()

    async def work(*, fails: bool) -> None:
        async with handrail.session(app, cwd=tmp_path) as s:
            await s.call("terminal", {"command": "true"})
            opened.append(s.id)
            is_open.set()
            if fails:
                raise ZeroDivisionError
            await asyncio.Event().wait()

    task = asyncio.ensure_future(work(fails=False))
    await is_open.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(ZeroDivisionError):
        await work(fails=True)
    assert [app.environments.peek(each) for each in opened] == [None, None]


def test_a_session_with_its_own_configuration_leaves_nothing(tmp_path: Path) -> None:
    with handrail.session(config=Config(), cwd=tmp_path) as s:
        home = Path(s.twin._app.config.home)
        s.call("terminal", {"command": "true"})
        assert home.exists()
    assert not home.exists()


async def test_mcp_servers_of_one_session_are_not_those_of_another(app: Handrail, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "from mcp.server import MCPServer\n"
        "server = MCPServer('s')\n"
        "@server.tool()\n"
        "def shout(text: str) -> str:\n"
        "    return text.upper()\n"
        "server.run()\n"
    )
    servers = {"loud": {"command": sys.executable, "args": [str(server)]}}
    async with handrail.session(app, mcp_servers=servers, toolsets=["file"]) as s, handrail.session(app) as other:
        assert "mcp__loud__shout" in json.dumps(s.tools())
        assert "HI" in (await s.call("mcp__loud__shout", {"text": "hi"})).text
        answers = await s.run([call("mcp__loud__shout", "c1", text="ho")])
        assert "HO" in answers[0]["content"]
        assert (await other.call("mcp__loud__shout", {"text": "hi"})).error_type == "unknown_tool"
        assert app.registry.get_entry("mcp__loud__shout") is None


async def test_an_agent_works_in_its_session(app: Handrail, tmp_path: Path) -> None:
    model = ScriptedModel(
        [ModelReply("", [model_call("terminal", command="rm -rf x; echo done")]), ModelReply("Done.")]
    )
    asked: list[str] = []

    async def ask(request: ApprovalRequest) -> Decision:
        asked.append(request.text)
        return Decision.ONCE

    async with handrail.session(app, cwd=tmp_path, approver=ask, model=[model]) as s:
        agent = s.agent()
        assert agent.session_id == s.id
        assert (await agent.arun("go")).answer == "Done."
    assert asked == ["rm -rf x; echo done"]


def test_many_sessions_of_one_app_share_its_registry(app: Handrail) -> None:
    add(app.registry, "mine", lambda args, **kw: "ok")
    with handrail.session(app) as one, handrail.session(app) as other:
        assert one.call("mine", {}).text == other.call("mine", {}).text == "ok"
        assert one.id != other.id


def test_a_request_is_answered_from_elsewhere_with_the_call_it_is_about(app: Handrail, tmp_path: Path) -> None:
    seen: list[str] = []

    async def later(request: ApprovalRequest) -> Decision:
        store: ApprovalStore = app.gate.store
        seen.append(store.get(request.id).request.tool_call_id)
        return Decision.ONCE

    with handrail.session(app, cwd=tmp_path, approver=later) as s:
        s.call("terminal", {"command": "rm -rf a"}, tool_call_id="c7")
    assert seen == ["c7"]


async def test_a_grant_is_found_before_anybody_is_asked_and_holds_for_its_session_alone(
    app: Handrail, tmp_path: Path
) -> None:
    asked: list[str] = []
    questions: list[ApprovalRequest] = []

    async def ask(request: ApprovalRequest) -> Decision:
        asked.append(request.session_id or "")
        return Decision.SESSION

    given = {"cwd": tmp_path, "approver": ask, "on_question": questions.append}
    async with handrail.session(app, **given) as one, handrail.session(app, **given) as other:
        for s in (one, one, other, one, other):
            assert not (await s.call("terminal", {"command": "rm -rf a"})).is_error
        assert asked == [one.id, other.id]
        # At once: neither call finds what the other is about to be granted by another session.
        await asyncio.gather(*(s.call("terminal", {"command": "git push --force"}) for s in (one, other)))
        assert sorted(asked[2:]) == sorted([one.id, other.id])
    assert len(questions) == len(asked)
    async with handrail.session(app, **given) as later:
        await later.call("terminal", {"command": "rm -rf a"})
    assert asked[-1] == later.id

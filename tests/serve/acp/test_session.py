"""Sessions of an editor: turns, cards, permissions, modes, and earlier sessions again."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema

from handrail.store.approvals import ApprovalStore
from handrail.testing import ModelReply, call
from handrail.testing.model_server import Fault, ModelServer, Raw

from ... import fork_server
from ...support import PATIENCE_SECONDS, trust_plugins
from .editor import Editor, opened, run, until

FORMS = {"elicitation": schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())}
FILES = {"fs": schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def said_by_tool(model: ModelServer, place: int = -1) -> Any:
    """The last result that the model was given."""
    return [each for each in model.requests[place]["messages"] if each["role"] == "tool"][-1]["content"]


def test_a_turn_streams_text_thoughts_cards_diffs_and_the_plan(home: Path, cwd: Path, model: ModelServer) -> None:
    (cwd / "old.txt").write_text("one\ntwo\n")
    items = [
        {"id": "1", "content": "look", "status": "completed"},
        {"id": "2", "content": "write", "status": "pending"},
    ]
    model.say(
        Raw([{"reasoning_content": "let me see"}, {"content": "I begin."}], finish="stop"),
        ModelReply(
            "Now the work.",
            [
                call("read_file", "c1", path="old.txt", offset=2),
                call("write_file", "c2", path="new.txt", content="hello\n"),
                call("patch", "c3", path="old.txt", old_string="two", new_string="three"),
                call("todo", "c4", todos=items),
                call("terminal", "c5", command="echo out; (exit 3)"),
                call("read_file", "c6", path="missing.txt"),
            ],
        ),
        ModelReply("Done."),
    )

    async def work(editor: Editor) -> None:
        assert (await editor.prompt("think")).stop_reason == "end_turn"
        assert editor.text("agent_thought_chunk") == "let me see"
        answer = await editor.prompt("go")
        assert answer.stop_reason == "end_turn"
        assert answer.usage is not None
        assert answer.usage.output_tokens == 10

    editor = run(home, cwd, model, work)
    assert editor.text() == "I begin.Now the work.Done."
    cards = {card.tool_call_id: card for card in editor.of("tool_call")}
    assert {name: card.kind for name, card in cards.items()} == {
        "c1": "read", "c2": "edit", "c3": "edit", "c4": "think", "c5": "execute", "c6": "read"
    }  # fmt: skip
    assert cards["c1"].locations == [schema.ToolCallLocation(path=str(cwd / "old.txt"), line=2)]
    assert cards["c2"].raw_input == {"path": "new.txt", "content": "hello\n"}
    assert cards["c5"].title == "echo out; (exit 3)"
    ends = editor.ends()
    assert {name: card.status for name, card in ends.items()} == {
        "c1": "completed", "c2": "completed", "c3": "completed", "c4": "completed", "c5": "failed", "c6": "failed"
    }  # fmt: skip
    new, old = ends["c2"].content[0], ends["c3"].content[0]
    assert (new.path, new.old_text, new.new_text) == (str(cwd / "new.txt"), None, "hello\n")
    assert (old.path, old.old_text, old.new_text) == (str(cwd / "old.txt"), "one\ntwo\n", "one\nthree\n")
    assert "out" in ends["c5"].content[0].content.text
    assert ends["c5"].raw_output["exit_code"] == 3
    assert [(entry.content, entry.status) for entry in editor.of("plan")[-1].entries] == [
        ("look", "completed"),
        ("write", "pending"),
    ]
    assert editor.of("session_info_update")[0].title == "think"
    assert editor.of("usage_update")[-1].size == 128_000


async def go(editor: Editor) -> None:
    await editor.prompt("go")


def dangerous(folder: Path, *names: str) -> list[ModelReply]:
    """A model that removes these folders, one per turn."""
    made = []
    for number, name in enumerate(names):
        (folder / name).mkdir()
        made += [ModelReply("", [call("terminal", f"rm{number}", command=f"rm -rf {folder / name}")]), ModelReply("ok")]
    return made


def test_permission_is_asked_on_the_card_of_its_call(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(*dangerous(cwd, "a", "b", "c"))

    async def work(editor: Editor) -> None:
        await editor.prompt("once")
        assert not (cwd / "a").exists()
        editor.answer = "session"
        await editor.prompt("for the session")
        assert not (cwd / "b").exists()
        await editor.prompt("this is not asked any more")
        assert not (cwd / "c").exists()

    editor = run(home, cwd, model, work)
    assert [asked.tool_call_id for asked in editor.asked] == ["rm0", "rm1"]
    assert [option.kind for option in editor.options[0]] == ["allow_once", "allow_once", "allow_always", "reject_once"]
    assert "rm -rf" in editor.asked[0].content[0].content.text
    states = [each.status for each in editor.of("tool_call_update") if each.tool_call_id == "rm0"]
    assert states == ["in_progress", "completed"]


def test_the_reason_of_a_denial_reaches_the_model(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(*dangerous(cwd, "keep"))

    async def work(editor: Editor) -> None:
        editor.answer, editor.filled_in = "deny", {"reason": "the backup is in there"}
        await editor.prompt("go")

    editor = run(home, cwd, model, work, **FORMS)
    assert (cwd / "keep").exists()
    assert len(editor.forms) == 1
    assert "the backup is in there" in said_by_tool(model)
    assert editor.ends()["rm0"].status == "failed"


def test_a_command_can_be_changed_before_it_runs(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(*dangerous(cwd, "keep", "keep_too"))
    (cwd / "other").mkdir()

    async def work(editor: Editor) -> None:
        editor.answer, editor.filled_in = ["edit", "once"], {"text": f"rm -rf {cwd / 'other'}"}
        await editor.prompt("go")
        assert (cwd / "keep").exists()
        assert not (cwd / "other").exists()
        assert str(cwd / "other") in json.loads(said_by_tool(model))["edited"]["command"]
        assert "keep" in editor.asked[0].title
        assert "other" in editor.asked[1].title  # it is asked about like any other
        editor.answer = ["edit", "edit", "deny"]
        editor.filled_in = {"text": f"rm -rf {cwd / 'keep_too'}"}  # not changed: nothing is decided by that
        await editor.prompt("go on")
        assert (cwd / "keep_too").exists()
        assert len(editor.asked) == 5

    editor = run(home, cwd, model, work, **FORMS)
    assert [option.option_id for option in editor.options[0]][-2:] == ["deny", "edit"]
    assert editor.options[0][-1].kind == "reject_once"  # what takes every yes must not take it for one


def test_an_editor_without_forms_is_not_offered_to_change_it(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(*dangerous(cwd, "keep"))

    async def work(editor: Editor) -> None:
        editor.answer = "edit"
        await editor.prompt("go")

    editor = run(home, cwd, model, work)
    assert (cwd / "keep").exists()
    assert "edit" not in [option.option_id for option in editor.options[0]]


@pytest.mark.parametrize("kept", [True, False])
def test_a_call_that_is_tried_shows_what_it_did_as_diffs(home: Path, cwd: Path, model: ModelServer, kept: bool) -> None:
    (cwd / "gone").mkdir()
    (cwd / "gone" / "a.txt").write_text("was here\n")
    (cwd / "b.txt").write_text("one\ntwo\n")
    command = "rm -rf gone; echo three >> b.txt; echo new > c.txt"
    model.say(ModelReply("", [call("terminal", "t", command=command)]), ModelReply("ok"))

    async def work(editor: Editor) -> None:
        editor.answer = ["try", "once" if kept else "deny"]
        await editor.prompt("go")

    editor = run(home, cwd, model, work)
    assert [asked.tool_call_id for asked in editor.asked] == ["t", "t"]
    assert [option.name for option in editor.options[1]] == ["Keep it", "Undo it"]
    diffs = {Path(each.path).name: each for each in editor.asked[1].content if each.type == "diff"}
    assert diffs["a.txt"].old_text == "was here"
    assert diffs["a.txt"].new_text == ""
    assert diffs["b.txt"].new_text == "one\ntwo\nthree"
    assert (diffs["c.txt"].old_text, diffs["c.txt"].new_text) == (None, "new\n")
    assert (cwd / "c.txt").exists() is kept
    assert (cwd / "gone" / "a.txt").exists() is not kept


def test_nothing_is_tried_or_said_to_be_watched_in_the_terminals_of_the_editor(
    home: Path, cwd: Path, model: ModelServer
) -> None:
    model.say(*dangerous(cwd, "keep"))

    async def work(editor: Editor) -> None:
        editor.answer = "try"
        await editor.prompt("go")

    editor = run(home, cwd, model, work, "--editor-terminals", terminal=True)
    assert "try" not in [option.option_id for option in editor.options[0]]
    assert (cwd / "keep").exists()
    model.say(ModelReply("", [call("terminal", "c", command="touch made")]), ModelReply("ok"))
    run(home, cwd, model, go, "--editor-terminals", terminal=True)
    env = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"]}
    listed = fork_server.run("-m", "handrail", "calls", "--json", env=env, cwd=cwd)
    assert [each["coverage"] for each in json.loads(listed.stdout)] == ["none"]


def test_what_a_turn_changed_can_be_taken_back(home: Path, cwd: Path, model: ModelServer) -> None:
    (cwd / "old.txt").write_text("old\n")
    model.say(
        ModelReply("", [call("write_file", "a", path="old.txt", content="new\n")]), ModelReply("ok"),
        ModelReply("", [call("terminal", "b", command="echo x > made.txt")]), ModelReply("ok"),
    )  # fmt: skip

    async def work(editor: Editor) -> None:
        async def said(text: str) -> str:
            editor.updates.clear()
            await editor.prompt(text)
            return editor.text()

        await editor.prompt("write")
        await editor.prompt("make")
        assert (await said("/rewind")).splitlines() == ["1. write", "2. make"]
        assert "is undone: echo x" in await said("/undo files")
        assert not (cwd / "made.txt").exists()
        assert "> write" in await said("/rewind 1")
        assert (cwd / "old.txt").read_text() == "old\n"
        assert "nothing to take back" in await said("/undo")
        assert "/rewind N" in await said("/rewind 7")

    run(home, cwd, model, work, **FILES)


def test_a_write_that_is_asked_about_is_shown_as_a_diff(home: Path, cwd: Path, model: ModelServer) -> None:
    place = cwd / ".bashrc"
    place.write_text("old\n")
    model.say(
        ModelReply("", [call("write_file", "w", path=str(place), content="new\nline\n")]),
        ModelReply("", [call("patch", "p", path=str(place), old_string="new", new_string="newer")]),
        ModelReply("ok"),
    )

    async def work(editor: Editor) -> None:
        await editor.prompt("go")

    editor = run(home, cwd, model, work)
    write, patch = (each.content[1] for each in editor.asked)
    assert (write.path, write.old_text, write.new_text) == (str(place), "old\n", "new\nline\n")
    assert (patch.path, patch.old_text, patch.new_text) == (str(place), "new\nline", "newer\nline")
    assert [each.tool_call_id for each in editor.asked] == ["w", "p"]
    assert place.read_text() == "newer\nline\n"


def test_a_question_is_answered_where_somebody_is_first(home: Path, cwd: Path, model: ModelServer) -> None:
    """A yes from the store, as the console and chats give it, ends the editor's question."""
    from handrail.protocols import Answer, Decision

    model.say(*dangerous(cwd, "gone"))

    async def work(editor: Editor) -> None:
        editor.answer = asyncio.Event()  # the editor's user does not answer
        turn = asyncio.ensure_future(editor.prompt("go"))
        await until(lambda: editor.asked)
        store = ApprovalStore(home / "state" / "approvals.db" if (home / "state").exists() else home / "approvals.db")
        waiting = store.pending()
        assert len(waiting) == 1
        store.answer(waiting[0].request.id, Answer(Decision.ONCE, "console"))
        assert (await turn).stop_reason == "end_turn"
        editor.answer.set()
        store.close()

    run(home, cwd, model, work)
    assert not (cwd / "gone").exists()


@pytest.mark.parametrize("where", ["command", "permission", "model"])
def test_cancel_answers_within_200_ms(home: Path, cwd: Path, model: ModelServer, where: str) -> None:
    (cwd / "d").mkdir()
    steps: dict[str, Any] = {
        "command": ModelReply("", [call("terminal", "c", command="echo begun > begun; sleep 1000")]),
        "permission": ModelReply("", [call("terminal", "c", command=f"rm -rf {cwd / 'd'}")]),
        "model": Fault(hang=1000),
    }
    model.say(steps[where], ModelReply("and on"))
    reached = {
        "command": lambda editor: (cwd / "begun").exists(),
        "permission": lambda editor: editor.asked,
        "model": lambda editor: model.requests,
    }

    async def work(editor: Editor) -> None:
        editor.answer = held = asyncio.Event()
        turn = asyncio.ensure_future(editor.prompt("go"))
        await until(lambda: reached[where](editor))
        began = time.monotonic()
        await editor.agent.cancel(session_id=editor.session)
        answer = await turn
        seconds = time.monotonic() - began
        held.set()
        assert answer.stop_reason == "cancelled"
        # Our own part takes 120 ms at most; the rest is for a machine that has other work.
        assert seconds < 0.2 + PATIENCE_SECONDS / 100, f"{seconds:.3f} s"
        if where != "model":
            assert editor.ends()["c"].status == "failed"
        assert (await editor.prompt("more")).stop_reason == "end_turn"

    run(home, cwd, model, work)
    assert (cwd / "d").exists()


def test_a_session_is_listed_loaded_forked_and_closed(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(
        ModelReply("Here.", [call("terminal", "c", command="echo out")]), ModelReply("Done."), ModelReply("Again.")
    )

    async def first(editor: Editor) -> None:
        await editor.prompt("remember this")

    before = run(home, cwd, model, first)

    async def later() -> Editor:
        async with opened(home, cwd, model) as editor:
            agent, old = editor.agent, before.session
            listed = await agent.list_sessions(cwd=str(cwd))
            assert [(each.session_id, each.title) for each in listed.sessions] == [(old, "remember this")]
            assert (await agent.list_sessions(cwd="/nowhere")).sessions == []
            await agent.load_session(cwd=str(cwd), session_id=old, mcp_servers=[])
            kinds = [update.session_update for _, update in editor.updates][:4]
            assert kinds == ["user_message_chunk", "agent_message_chunk", "tool_call", "agent_message_chunk"]
            assert editor.text("user_message_chunk") == "remember this"
            card = editor.of("tool_call")[0]
            assert (card.title, card.status) == ("echo out", "completed")
            assert "out" in card.content[0].content.text
            forked = await agent.fork_session(session_id=old, cwd=str(cwd))
            assert forked.session_id != old
            await editor.prompt("go on", session=forked.session_id)
            assert [each["role"] for each in model.requests[-1]["messages"][1:]] == [
                "user", "assistant", "tool", "assistant", "user"
            ]  # fmt: skip
            await agent.close_session(session_id=forked.session_id)
            for session in (forked.session_id, "no-such", old[:-1]):
                with pytest.raises(acp.RequestError):
                    await editor.prompt("hello?", session=session)
            with pytest.raises(acp.RequestError):
                await agent.load_session(cwd=str(cwd), session_id=old[:-1], mcp_servers=[])
            with pytest.raises(acp.RequestError):
                await agent.new_session(cwd="relative", mcp_servers=[])
            return editor

    asyncio.run(later())


def test_where_commands_are_not_contained_a_session_starts_in_ask(home: Path, cwd: Path, model: ModelServer) -> None:
    (home / "config.yaml").write_text("terminal: {profile: open}\n")

    async def inside() -> str:
        async with opened(home, cwd, model) as editor:
            made = await editor.agent.new_session(cwd=str(cwd), mcp_servers=[])
            return made.modes.current_mode_id

    assert asyncio.run(inside()) == "ask"


def test_plan_mode_runs_and_writes_nothing(home: Path, cwd: Path, model: ModelServer) -> None:
    calls = [call("write_file", "w", path="x", content="x"), call("terminal", "t", command="touch y")]
    model.say(ModelReply("", calls), ModelReply("planned"), ModelReply("", calls), ModelReply("done"))

    async def work(editor: Editor) -> None:
        await editor.agent.set_session_mode(session_id=editor.session, mode_id="plan")
        await editor.prompt("go")
        assert os.listdir(cwd) == []
        assert "this session only plans" in str(model.requests[1]["messages"])
        await editor.agent.set_session_mode(session_id=editor.session, mode_id="auto")
        await editor.prompt("now do it")
        assert set(os.listdir(cwd)) == {"x", "y"}
        with pytest.raises(acp.RequestError):
            await editor.agent.set_session_mode(session_id=editor.session, mode_id="whatever")

    run(home, cwd, model, work)


def test_the_mode_that_does_not_ask_does_not_lift_what_is_forbidden(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(*dangerous(cwd, "gone"), ModelReply("", [call("terminal", "f", command="rm -rf /")]), ModelReply("no"))

    async def work(editor: Editor) -> None:
        await editor.agent.set_session_mode(session_id=editor.session, mode_id="yolo")
        await editor.prompt("go")
        assert not (cwd / "gone").exists()
        await editor.prompt("worse")
        assert editor.ends()["f"].status == "failed"
        assert editor.asked == []

    run(home, cwd, model, work)


def test_another_model_can_be_chosen(home: Path, cwd: Path) -> None:
    with ModelServer([ModelReply("hi")], models=("scripted", "other")) as model:

        async def work(editor: Editor) -> None:
            await until(lambda: editor.of("config_option_update"))
            option = editor.of("config_option_update")[-1].config_options[0]
            assert [each.value for each in option.options] == ["scripted", "other"]
            change = {"session_id": editor.session, "config_id": "model"}
            answer = await editor.agent.set_config_option(**change, value="other")
            assert answer.config_options[0].current_value == "other"
            await editor.prompt("hello")
            assert model.requests[-1]["model"] == "other"
            with pytest.raises(acp.RequestError):
                await editor.agent.set_config_option(**change, value="no-such")

        run(home, cwd, model, work)


def test_slash_commands_are_offered_and_work(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(ModelReply("hi"))
    (home / "plugins").mkdir()
    source = "def register(ctx):\n    ctx.register_command('shout', lambda text: text.upper(), description='Shouts')\n"
    (home / "plugins" / "loud.py").write_text(source)
    trust_plugins(home)

    async def work(editor: Editor) -> None:
        await until(lambda: editor.of("available_commands_update"))
        names = {command.name for command in editor.of("available_commands_update")[0].available_commands}
        assert {"compact", "undo", "tools", "cost", "title", "shout"} <= names
        await editor.prompt("hello")
        for text, expected in (("/cost", "10 tokens in"), ("/tools", "`read_file`"), ("/title A name", "A name"),
                               ("/undo", "> hello"), ("/compact", "too little"), ("/shout hey", "HEY")):  # fmt: skip
            editor.updates.clear()
            assert (await editor.prompt(text)).stop_reason == "end_turn"
            assert expected in editor.text()
        assert len(model.requests) == 1

    run(home, cwd, model, work)


def test_a_message_is_taken_back_with_its_changes_on_disk(home: Path, cwd: Path, model: ModelServer) -> None:
    made = (
        (ModelReply("", [call("terminal", n, command=f"echo x > {n}")]), ModelReply("done")) for n in ("one", "two")
    )
    model.say(*(reply for pair in made for reply in pair))

    async def work(editor: Editor) -> None:
        await editor.prompt("make one")
        await editor.prompt("make two")
        assert (cwd / "one").exists()
        assert (cwd / "two").exists()
        editor.updates.clear()
        await editor.prompt("/rewind")
        assert "1. make one" in editor.text()
        assert "2. make two" in editor.text()
        await editor.prompt("/undo nonsense")
        assert "/undo files" in editor.text()
        assert (cwd / "two").exists()
        await editor.prompt("/undo")
        assert "> make two" in editor.text()
        assert (cwd / "one").exists()
        assert not (cwd / "two").exists()
        (cwd / "one").write_text("by hand")
        editor.updates.clear()
        await editor.prompt("/rewind 1")
        assert f"stays: {cwd / 'one'} was changed since" in editor.text()
        assert (cwd / "one").exists()

    run(home, cwd, model, work)


def test_servers_of_the_editor_are_for_that_session_only(home: Path, cwd: Path, model: ModelServer) -> None:
    server = Path(__file__).parents[2] / "mcp_servers" / "plain.py"
    given = schema.McpServerStdio(name="My Server!", command=sys.executable, args=[str(server)], env=[])
    model.say(ModelReply("one"), ModelReply("two"))

    async def work(editor: Editor) -> None:
        made = await editor.agent.new_session(cwd=str(cwd), mcp_servers=[given])
        await editor.prompt("with", session=made.session_id)
        await editor.prompt("without")
        offered = [{tool["function"]["name"] for tool in request["tools"]} for request in model.requests]
        assert any(name.startswith("mcp__My-Server__") for name in offered[0])
        assert not any(name.startswith("mcp__") for name in offered[1])

    run(home, cwd, model, work)


def test_a_session_that_is_loaded_twice_at_once_is_open_once(home: Path, cwd: Path, model: ModelServer) -> None:
    server = Path(__file__).parents[2] / "mcp_servers" / "plain.py"
    script = f'echo $$ >> "{cwd}/started"; exec "{sys.executable}" "{server}"'
    given = schema.McpServerStdio(name="one", command="/bin/sh", args=["-c", script], env=[])

    def running() -> list[str]:
        started = (cwd / "started").read_text().split() if (cwd / "started").exists() else []
        return [number for number in started if Path("/proc", number).exists()]

    async def work(editor: Editor) -> None:
        again: Any = {"cwd": str(cwd), "session_id": editor.session, "mcp_servers": [given]}
        await asyncio.gather(*(editor.agent.load_session(**again) for _ in range(3)))
        await until(lambda: len(running()) == 1)
        await editor.agent.close_session(session_id=editor.session)
        await until(lambda: not running())

    run(home, cwd, model, work)


def test_an_image_reaches_the_model_and_is_replayed(home: Path, cwd: Path, model: ModelServer) -> None:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    model.say(ModelReply("a picture"))
    resource = schema.TextResourceContents(uri="file:///notes.txt", text="some notes")

    async def work(editor: Editor) -> None:
        await editor.prompt("look", acp.image_block(data, "image/png"), acp.resource_block(resource))
        parts = model.requests[0]["messages"][-1]["content"]
        assert [part["type"] for part in parts] == ["text", "image_url", "text"]
        assert parts[1]["image_url"]["url"] == f"data:image/png;base64,{data}"
        assert "some notes" in parts[2]["text"]
        editor.updates.clear()
        await editor.agent.load_session(cwd=str(cwd), session_id=editor.session, mcp_servers=[])
        assert [update.content.type for update in editor.of("user_message_chunk")] == ["text", "image", "text"]

    run(home, cwd, model, work)


def test_an_image_that_a_tool_returns_is_on_its_card(home: Path, cwd: Path, model: ModelServer) -> None:
    server = Path(__file__).parents[2] / "mcp_servers" / "plain.py"
    given = schema.McpServerStdio(name="plain", command=sys.executable, args=[str(server)], env=[])
    model.say(ModelReply("", [call("mcp__plain__picture", "c1")]), ModelReply("A pixel."))

    async def work(editor: Editor) -> None:
        made = await editor.agent.new_session(cwd=str(cwd), mcp_servers=[given])
        await editor.prompt("show it", session=made.session_id)
        ended = [update for update in editor.of("tool_call_update") if update.status == "completed"]
        assert [block.content.type for block in ended[-1].content][-1] == "image"

    run(home, cwd, model, work)


def test_unsaved_text_is_read_and_the_editor_gets_what_is_written(home: Path, cwd: Path, model: ModelServer) -> None:
    note, crlf = cwd / "note.txt", cwd / "crlf.txt"
    note.write_text("on the disk\n")
    crlf.write_bytes(b"a\r\nb\r\n")
    model.say(
        ModelReply("", [call("read_file", "r", path="note.txt"), call("read_file", "s", path="crlf.txt")]),
        ModelReply("", [call("patch", "p", path="note.txt", old_string="unsaved", new_string="kept")]),
        ModelReply("done"),
    )

    async def work(editor: Editor) -> None:
        editor.buffers = {str(note): "still unsaved\n", str(crlf): "a\nb\n"}
        await editor.prompt("go")
        results = [each["content"] for each in model.requests[1]["messages"] if each["role"] == "tool"]
        assert "still unsaved" in results[0]
        assert "on the disk" not in results[0]
        assert json.loads(results[1]).get("line_endings", "crlf") == "crlf"
        assert editor.buffers[str(note)] == "still kept\n"

    editor = run(home, cwd, model, work, **FILES)
    assert note.read_bytes() == b"still kept\n"
    diff = editor.ends()["p"].content[0]
    assert (diff.old_text, diff.new_text) == ("still unsaved\n", "still kept\n")


def test_a_write_that_is_refused_reaches_no_buffer(home: Path, cwd: Path, model: ModelServer) -> None:
    (home / "config.yaml").write_text(f"files: {{roots: [{cwd}]}}\n")
    outside = cwd.parent / "outside.txt"
    model.say(ModelReply("", [call("write_file", "w", path=str(outside), content="x")]), ModelReply("no"))

    async def work(editor: Editor) -> None:
        await editor.prompt("go")
        assert editor.buffers == {}
        assert editor.ends()["w"].status == "failed"

    run(home, cwd, model, work, **FILES)
    assert not outside.exists()


def test_commands_run_in_the_terminals_of_the_editor(home: Path, cwd: Path, model: ModelServer) -> None:
    (cwd / "sub").mkdir()
    commands = ["cd sub && export NAME=value", "echo $NAME; pwd; cat; exit 7", "sleep 1000"]
    model.say(
        ModelReply("", [call("terminal", "a", command=commands[0])]),
        ModelReply("", [call("terminal", "b", command=commands[1]), call("write_file", "w", path="here", content="x")]),
        ModelReply("", [call("terminal", "c", command=commands[2], timeout=1)]),
        ModelReply("done"),
    )

    async def work(editor: Editor) -> None:
        await editor.prompt("go")

    editor = run(home, cwd, model, work, "--editor-terminals", terminal=True)
    assert len(editor.terminals) == 3
    assert all(each.poll() is not None for each in editor.terminals.values())
    ends = editor.ends()
    assert ends["b"].raw_output["output"].split() == ["value", str(cwd / "sub")]
    assert ends["b"].raw_output["exit_code"] == 7
    assert ends["c"].raw_output["exit_code"] == 124
    assert (cwd / "sub" / "here").exists()
    shown = [each for each in editor.of("tool_call_update") if each.content and each.content[0].type == "terminal"]
    assert [each.tool_call_id for each in shown] == ["a", "b", "c"]


def test_cancel_ends_what_runs_in_a_terminal_of_the_editor(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(ModelReply("", [call("terminal", "c", command="touch begun; sleep 1000")]), ModelReply("on"))

    async def work(editor: Editor) -> None:
        turn = asyncio.ensure_future(editor.prompt("go"))
        await until((cwd / "begun").exists)
        await editor.agent.cancel(session_id=editor.session)
        assert (await turn).stop_reason == "cancelled"
        await until(lambda: editor.terminals["terminal-0"].poll() is not None)
        assert (await editor.prompt("more")).stop_reason == "end_turn"

    run(home, cwd, model, work, "--editor-terminals", terminal=True)


def test_a_question_of_the_agent_is_a_form(home: Path, cwd: Path, model: ModelServer) -> None:
    model.say(ModelReply("", [call("clarify", "q", question="Which?", choices=["left", "right"])]), ModelReply("ok"))

    async def work(editor: Editor) -> None:
        editor.filled_in = {"choice": "right"}
        await editor.prompt("go")
        assert editor.forms == ["Which?"]
        assert "right" in said_by_tool(model)

    run(home, cwd, model, work, **FORMS)

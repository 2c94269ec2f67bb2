"""What is shown of a turn, and what the person may type besides messages."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.models.base import CallPiece, Finished, Piece, ReasoningPiece, TextPiece
from handrail.cli.chat.session_commands import resume_choices
from handrail.cli.chat.tool_commands import model_choices
from handrail.cli.chat.turn import Leave
from handrail.cli.chat.type_ahead import TypedAhead
from handrail.cli.chat.work_commands import last_theme, own_commands
from handrail.cli.output import typed
from handrail.config.paths import config_path
from handrail.protocols import Decision, ModelReply
from handrail.testing import call
from handrail.testing.model_server import ModelServer
from handrail.tools.skills.library import Library

from .conftest import Talk

Begin = Callable[..., Talk]


def test_calls_are_shown_with_what_they_changed(talk: Begin, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    person = talk(
        ModelReply("I change it.", [call("patch", path="a.txt", old_string="old", new_string="new")]),
        ModelReply("", [call("terminal", command="seq 20")]),
        ModelReply("", [call("todo", todos=[{"id": "1", "content": "Rest", "status": "completed"}])]),
        ModelReply("", [call("read_file", path="nowhere.txt")]),
        ModelReply("", [call("write_file", path="b.txt", content="".join(f"line {n}\n" for n in range(30)))]),
        ModelReply("# Done\n\nIt is **new**."),
    )
    shown = person("Do it")
    for line in (
        "I change it.",
        "✓ 🩹 patch a.txt (",
        "       1 - old\n       1 + new\n",
        "✓ 💻 terminal seq 20 (",
        "    … 15 lines above\n    16\n    17\n    18\n    19\n    20\n",
        "    ☑ Rest",
        "✗ 📖 read_file nowhere.txt (",
        "✓ ✍️ write_file b.txt (",
        "       1 + line 0\n",
        "      10 + line 9\n    … 20 more lines\n",
        "It is new.",
        "5 calls · ",
    ):
        assert line in shown
    assert " Done" not in shown, "a heading begins where the answer does"


def test_a_running_call_stands_below_with_its_last_lines(talk: Begin) -> None:
    person = talk(
        ModelReply("", [call("terminal", command="for i in 1 2 3 4; do echo line $i; sleep 0.15; done")]),
        ModelReply("ok"),
    )
    shown = person("Go")
    assert "⠋" in shown or "⠙" in shown or "⠹" in shown
    assert "    line 1" in shown


def test_a_bare_address_is_shown_once(talk: Begin) -> None:
    shown = talk(ModelReply("See <https://example.org/a> and [the docs](https://example.org/b)."))("Where?")
    assert "See https://example.org/a and the docs (https://example.org/b)." in shown


def test_a_mention_of_what_is_no_file_says_so(talk: Begin, tmp_path: Path) -> None:
    (tmp_path / "notes.md").touch()
    shown = talk(ModelReply("No."))("Is @nothere, or @notes.md?")
    assert "No such file here, so sent as text: @nothere\n" in shown


def test_what_a_model_writes_cannot_steer_the_terminal(talk: Begin) -> None:
    person = talk(
        ModelReply("evil \x1b]0;title\x07 text", [call("terminal", command="printf 'a\\033[2Jb'\n", note="\x1b[5m")]),
        ModelReply("\x1b[31mred"),
    )
    person("Go")
    wrote = person._paper.wrote
    assert "\x1b]0;" not in wrote
    assert "\x1b[2J" not in wrote
    assert "\x1b[5m" not in wrote
    assert r"\x1b[31mred" in wrote


def test_a_dangerous_call_is_denied_by_the_person_and_shown_as_such(talk: Begin, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    person = talk(ModelReply("", [call("terminal", command="rm -rf build")]), ModelReply("I leave it."))
    shown = person("Clean")
    assert "✗ 💻 terminal rm -rf build" in shown
    assert "    Denied by " in shown
    assert "Do not try" not in shown, "that is advice for the model"
    assert (tmp_path / "build").is_dir()


def test_yolo_asks_nobody_until_it_is_taken_back(talk: Begin, tmp_path: Path) -> None:
    dangerous = ModelReply("", [call("terminal", command="rm -rf build")])
    person = talk(dangerous, ModelReply("gone"), dangerous, ModelReply("denied"))
    assert "You are not asked" in person("/yolo")
    (tmp_path / "build").mkdir()
    person("Clean")
    assert not (tmp_path / "build").exists()
    assert person.approver.requests == []
    assert "asked again" in person("/yolo off")
    (tmp_path / "build").mkdir()
    person("Clean again")
    assert (tmp_path / "build").is_dir()
    assert len(person.approver.requests) == 1
    assert "/yolo on, or" in person("/yolo maybe")


def test_what_a_plugin_says_to_an_idle_chat_starts_a_turn(
    talk: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret.txt").write_text("not for a plugin to send")
    begun = talk(ModelReply("I see."))
    chat, reads = begun.chat, iter(["", EOFError()])

    class Keys:
        """At first nobody types, and a plugin speaks meanwhile."""

        def read(self, prompt: object, text: str) -> str:
            if isinstance(found := next(reads), EOFError):
                raise found
            chat.agent.inject("[Message from the plugin bus] news, see @secret.txt")
            return found

        def wake(self) -> None:
            woken.append(True)

        def close(self) -> None: ...

    woken: list[bool] = []
    monkeypatch.setitem(chat.__dict__, "_input", Keys())
    with pytest.raises(Leave):
        chat.talk()
    assert woken == [True]
    assert begun.sent[-1] == "[Message from the plugin bus] news, see @secret.txt"


def test_a_failing_model_is_told_and_the_chat_goes_on(talk: Begin) -> None:
    person = talk()

    async def refuse(messages: object, tools: object) -> None:
        from handrail.errors import ModelError

        raise ModelError("the key is refused; set OPENAI_API_KEY")
        yield

    person.chat.agent.models[0].stream = refuse  # type: ignore[method-assign, assignment]
    assert "the key is refused; set OPENAI_API_KEY" in person("Hello")
    assert "tokens in" in person("/cost")


class TestOwnCommands:
    def test_it_runs_in_the_agents_shell_and_the_agent_is_told(self, talk: Begin, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        person = talk(
            ModelReply("", [call("terminal", command='basename "$PWD"')]), ModelReply("seen"), ModelReply("ok")
        )
        assert person("!cd sub && echo hello") == "hello\n"
        shown = person("Where are we?")
        assert "    sub\n" in shown
        asked = next(text for text in person.sent if text.startswith("Where are we?"))
        assert asked == "Where are we?\n\n[I ran `cd sub && echo hello` myself; exit code 0. Its output:]\nhello"
        person("And now?")
        assert person.sent[-1] == "And now?", "it is told once"

    def test_two_marks_keep_it_from_the_agent(self, talk: Begin) -> None:
        person = talk(ModelReply("ok"))
        assert "exit code 3" in person("!!echo secret; exit 3")
        person("Hello")
        assert person.sent[-1] == "Hello"

    def test_no_gate_stands_before_the_persons_own(self, talk: Begin, tmp_path: Path) -> None:
        (tmp_path / "build").mkdir()
        talk()("!rm -rf build")
        assert not (tmp_path / "build").exists()

    def test_a_secret_of_the_runtime_is_masked_for_the_agent(
        self, talk: Begin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecretindeed")
        person = talk(ModelReply("ok"))
        person("!echo sk-verysecretindeed")
        person("Hello")
        assert "verysecret" not in person.sent[-1]

    def test_a_long_output_is_shown_whole_and_told_in_part(self, talk: Begin) -> None:
        person = talk(ModelReply("ok"))
        shown = person("!seq 30000")
        assert shown.count("\n") == 30000
        person("Hello")
        assert len(person.sent[-1]) < 9000
        assert "30000" in person.sent[-1]

    def test_nothing_to_run_says_how(self, talk: Begin) -> None:
        assert "!command runs" in talk()("!")


class TestSlashCommands:
    def test_the_mode_is_shown_and_changed(self, talk: Begin) -> None:
        person = talk(ModelReply("", [call("write_file", path="a.txt", content="x")]), ModelReply("It may not."))
        assert "● auto  it asks before anything destructive" in person("/mode")
        assert "● plan  nothing that changes anything runs" in person("/mode plan")
        assert "this session only plans" in person("Write it")
        assert "no mode 'fast'; choose plan, ask, auto or yolo" in person("/mode fast")

    def test_the_changes_since_the_last_commit(self, talk: Begin, tmp_path: Path) -> None:
        person = talk()
        assert "not in a git repository" in person("/diff")
        git = "git -c user.name=a -c user.email=a@example.org"
        person("!git init -q && echo 'x = 1' > a.py")
        assert "a.py (new; git does not track it yet)" in person("/diff"), "before the first commit"
        person(f"!git add a.py && {git} commit -qm first")
        assert "Nothing has changed" in person("/diff")
        (tmp_path / "a.py").write_text("x = 2\n")
        (tmp_path / "b.py").touch()
        shown = person("/diff")
        assert "a.py\n   1 - x = 1\n   1 + x = 2\n" in shown
        assert "b.py (new; git does not track it yet)" in shown
        assert "Nothing has changed in c.py since the last commit." in person("/diff c.py")
        assert "a.py\n   1 - x = 1\n" in person("/diff a.py")

    @pytest.mark.parametrize("line", ["/", "/ help"])
    def test_a_slash_alone_is_no_message(self, talk: Begin, line: str) -> None:
        assert "there is no command /; /help shows them" in talk()(line)

    def test_servers_that_wait_for_trust_are_listed_with_the_reason(self, talk: Begin, tmp_path: Path) -> None:
        (tmp_path / ".mcp.json").write_text('{"mcpServers": {"clock": {"command": "no-such-program"}}}')
        shown = " ".join(talk()("/mcp").split())
        assert f"clock: it comes with the project; read .mcp.json, then `{typed('mcp trust')}`" in shown

    def test_a_cost_by_list_prices_says_how_old_they_are(self, talk: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
        person = talk(ModelReply("Hello."))
        assert "list prices" not in person("/cost")
        monkeypatch.setattr(person.chat.agent.models[0], "name", "gpt-5")
        assert re.search(r"by list prices of 20\d\d-\d\d", person("/cost"))

    def test_what_is_used_often_is_a_command(self, talk: Begin) -> None:
        person = talk(ModelReply("Written."), ModelReply("All well."))
        assert "Written." in person("/init")
        assert "write AGENTS.md" in person.sent[-1]
        assert "All well." in person("/review locking")
        assert "above all: locking" in person.sent[-1]
        assert "Copied 9 characters" in person("/copy")
        assert "No MCP servers" in person("/mcp")
        assert "mode    auto" in person("/status")
        assert "No skills" in person("/skills")
        assert "theme monokai" in person("/theme monokai")
        assert last_theme() == "monokai", "the next chat has it, too"
        assert "no theme 'pink'" in person("/theme pink")

    def test_own_commands_are_files_beside_the_configuration(self, talk: Begin, tmp_path: Path) -> None:
        folder = config_path().parent / "commands"
        folder.mkdir(parents=True)
        (folder / "explain.md").write_text("# Explain a file\nExplain $ARGUMENTS to a child.\n")
        (folder / "help.md").write_text("never used")
        person = talk(ModelReply("It is easy."))
        person.chat._commands += own_commands(Library(), ["help"])
        assert "It is easy." in person("/explain a.py")
        assert "Explain a.py to a child." in person.sent[-1]
        assert [each.name for each in own_commands(Library(), ["help"])] == ["explain"]

    def test_help_names_every_command(self, talk: Begin) -> None:
        from handrail.cli.chat.slash_commands import COMMANDS

        shown = talk()("/help")
        assert all(f"/{command.name}" in shown for command in COMMANDS)
        assert max(map(len, shown.splitlines())) <= 80
        assert all(
            line.startswith(("/", "!", "@", "Alt-", "Ctrl-", "Esc", "F2", "Shift-", "while"))
            for line in shown.splitlines()
        ), "one line each"

    @pytest.mark.parametrize(
        "line",
        ["/tools", "/toolsets", "/model", "/processes", "/approve", "/undo", "/resume", "/title", "/cost"],
    )
    def test_each_says_something_at_80_columns(self, talk: Begin, line: str) -> None:
        shown = talk()(line)
        assert shown.strip()
        assert max(map(len, shown.splitlines())) <= 80

    def test_an_unknown_one_names_the_nearest(self, talk: Begin) -> None:
        assert "did you mean /tools?" in talk()("/tolos")

    def test_a_path_is_no_command(self, talk: Begin) -> None:
        person = talk(ModelReply("a list"), ModelReply("a folder"))
        person("/etc/hosts what is this?")
        assert person.sent[-1] == "/etc/hosts what is this?"
        person("/tmp is what?")
        assert person.sent[-1] == "/tmp is what?"

    @pytest.mark.parametrize("line", ["/quit", "/exit", "/q"])
    def test_leaving(self, talk: Begin, line: str) -> None:
        with pytest.raises(Leave):
            talk()(line)

    def test_a_toolset_is_taken_away_and_given_back(self, talk: Begin) -> None:
        person = talk(ModelReply("one"), ModelReply("two"))
        model = person.chat.agent.models[0]._model  # type: ignore[attr-defined]

        def offered() -> set[str]:
            return {tool["function"]["name"] for tool in model.sent[-1].tools}

        person("/toolsets -terminal")
        person("Hello")
        assert "terminal" not in offered()
        assert "read_file" in offered()
        person("/toolsets +terminal")
        person("Hello again")
        assert "terminal" in offered()
        assert "nonsense" in person("/toolsets +nonsense")
        assert "gives the agent" in person("/toolsets nonsense")

    def test_the_tools_for_code_are_at_hand_and_others_are_searched_for(self, talk: Begin) -> None:
        person = talk(ModelReply("Hi."), ModelReply("Hi again."))
        model = person.chat.agent.models[0]._model  # type: ignore[attr-defined]

        def offered() -> set[str]:
            return {tool["function"]["name"] for tool in model.sent[-1].tools}

        person("Hello")
        assert {"terminal", "read_file", "patch", "tool_search", "tool_call"} <= offered()
        assert not offered() & {"rl_start", "cronjob", "text_to_speech"}
        enabled, disabled = person.chat.agent.loop.tool_calls.toolsets
        assert "rl_start" in person.chat.app.definitions.names(enabled, disabled), "it may be called"
        assert "The agent finds other tools with tool_search" in person("/tools")
        person("/toolsets +cronjob")
        person("Hello again")
        assert "cronjob" in offered()

    def test_a_child_agent_can_be_opened(self, talk: Begin) -> None:
        person = talk(
            ModelReply("", [call("delegate_task", goal="Count the files.")]),
            ModelReply("I look first.", [call("terminal", command="echo 3 files")]),
            ModelReply("There are 3."),
            ModelReply("A child counted."),
        )
        child, typed = person.chat.view.child, TypedAhead()
        typed.feed(b"\x0f")
        assert typed.opened
        person("Count them")
        assert child.lines(80, 10) == []
        child.next()
        shown = [line.plain.strip() for line in child.lines(80, 10)]
        assert shown[0].startswith("▸ Count the files. · 1 of 1")
        assert shown[1:] == ["I look first.", 'terminal {"command": "echo 3 files"}', "3 files", "There are 3."]
        child.next()
        assert child.lines(80, 10) == []
        listed = person("/children")
        assert "There are 3." in person(f"/children {listed.split()[0]}")

    def test_another_model_is_asked_from_now_on(self, talk: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        with ModelServer(models=["other", "gpt-5-mini"]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            person = talk()
            assert "other, 128,000 tokens" in person("/model other")
            assert person.chat.store.get(person.chat.agent.session_id).model == "other"
            assert "per million tokens" in person("/model gpt-5-mini")

    def test_a_model_that_the_provider_does_not_have_is_refused(
        self, talk: Begin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        with ModelServer(models=["gpt-5", "gpt-5-mini"]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            person = talk()
            person("/model gpt-5")
            assert "no model 'gtp-5-mini'; did you mean 'gpt-5-mini'?" in person("/model gtp-5-mini")
            assert person.chat.agent.models[0].name == "gpt-5"
            assert list(model_choices(person.chat)) == ["gpt-5", "gpt-5-mini"]

    def test_a_model_whose_provider_does_not_answer_is_taken_with_a_warning(
        self, talk: Begin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        person = talk()
        shown = person("/model other")
        assert "could not be checked" in shown
        assert "other, 128,000 tokens" in shown

    def test_undo_takes_back_the_turn_and_offers_it_again(self, talk: Begin) -> None:
        person = talk(ModelReply("first answer"), ModelReply("second answer"))
        person("First")
        assert "Taken back" in person("/undo")
        assert person.chat.draft == "First"
        person("Second")
        assert person.sent[1:] == ["Second"]
        person("/undo")
        assert "nothing to take back" in person("/undo")

    def test_undo_takes_back_what_the_turn_changed_on_disk(self, talk: Begin, tmp_path: Path) -> None:
        made = [tmp_path / name for name in ("first", "second")]
        replies = [
            reply
            for path in made
            for reply in (ModelReply("", [call("write_file", path=str(path), content="x")]), ModelReply("Done."))
        ]
        person = talk(*replies)
        person("Write the first")
        person("Write the second")
        said = person("/undo files")
        assert "is undone" in said
        assert "second" in said
        assert [path.exists() for path in made] == [True, False]
        person("/undo message")
        assert "is undone" in person("/undo")
        assert [path.exists() for path in made] == [False, False]
        assert "/undo message" in person("/undo everything")

    def test_rewind_goes_back_to_a_message_with_files_and_conversation_together_or_apart(
        self, talk: Begin, tmp_path: Path
    ) -> None:
        made = [tmp_path / name for name in ("one", "two", "three")]
        replies = [
            reply
            for path in made
            for reply in (ModelReply("", [call("write_file", path=str(path), content="x")]), ModelReply("Done."))
        ]
        person = talk(*replies)
        assert "not said anything" in person("/rewind")
        for path in made:
            person(f"Write {path.name}")
        listed = person("/rewind")
        assert [word in listed for word in ("Write one", "Write two", "Write three")] == [True] * 3
        assert person("/rewind 3 files").count("is undone") == 1
        assert [path.exists() for path in made] == [True, True, False]
        assert "stay as they are" in person("/rewind 3 message")
        assert person.chat.draft == "Write three"
        assert "Taken back" in person("/rewind 1")
        assert [path.exists() for path in made] == [False, False, False]
        assert (person.chat.draft, len(person.chat.agent.loop.conversation)) == ("Write one", 0)
        for wrong in ("/rewind 1", "/rewind 0", "/rewind x", "/rewind 1 everything"):
            assert "/rewind lists your messages" in person(wrong)

    def test_the_conversation_is_saved_to_a_file_that_was_not_there(self, talk: Begin, tmp_path: Path) -> None:
        person = talk(ModelReply("", [call("terminal", command="echo hi")]), ModelReply("It says **hi**."))
        person("Say hi")
        person("/save talk.md")
        text = (tmp_path / "talk.md").read_text()
        assert text.startswith("# Say hi\n")
        assert "## You\n\nSay hi" in text
        assert "It says **hi**." in text
        person("/save talk.jsonl")
        lines = [json.loads(line) for line in (tmp_path / "talk.jsonl").read_text().splitlines()]
        assert [line["role"] for line in lines[1:]] == ["user", "assistant", "tool", "assistant"]
        assert "talk.md is there already" in person("/save talk.md")

    def test_sessions_are_left_gone_back_to_and_branched(self, talk: Begin) -> None:
        person = talk(ModelReply("one"), ModelReply("two"), ModelReply("three"))
        person("First session")
        first = person.chat.agent.session_id
        person("/new")
        person("Second session")
        opened = person.chat.store.create(
            platform="chat", model="m", cwd="/"
        )  # in another terminal, where nobody has typed
        listed = person("/resume")
        assert "First session" in listed
        assert opened.id not in listed
        assert list(resume_choices(person.chat)) == [f"{first}\tFirst session"]
        shown = person(f"/resume {first}")
        assert "› First session" in shown
        assert person.chat.agent.session_id == first
        assert "the current session" in person(f"/resume {first}")
        assert first in person("/branch")
        assert person.chat.agent.session_id != first
        assert len(person.chat.agent.loop.conversation) == 2
        assert "A better name" in person("/title A better name")
        assert "no session" in person("/resume nonsense")

    def test_another_terminal_that_was_just_opened_is_not_the_last_session(self, talk: Begin) -> None:
        person = talk(ModelReply("one"))
        person("First session")
        other = talk()
        other.chat.open("last")
        assert other.chat.agent.session_id == person.chat.agent.session_id

    def test_hooks_are_told_of_who_begins_anew(self, talk: Begin, default_hooks: Any) -> None:
        told: list[tuple[str, str]] = []
        default_hooks("on_session_reset", lambda session_id, new_session_id: told.append((session_id, new_session_id)))
        person = talk()
        before = person.chat.agent.session_id
        person("/new")
        assert told == [(before, person.chat.agent.session_id)]

    def test_a_session_in_which_nothing_was_said_is_not_kept(self, talk: Begin) -> None:
        person = talk()
        empty = person.chat.agent.session_id
        person("/new")
        assert empty not in {info.id for info in person.chat.store.recent()}

    def test_compact_puts_a_summary_in_place_of_the_beginning(self, talk: Begin) -> None:
        answers = [ModelReply(f"answer {number}") for number in range(4)]
        person = talk(*answers, ModelReply("They counted."), ModelReply("last"))
        assert "too little" in person("/compact")
        for number in range(4):
            person(f"question {number}")
        assert "From about" in person("/compact")
        person("And?")
        assert "They counted." in person.sent[1]
        assert not any(text == "question 0" for text in person.sent)

    def test_cost_tells_tokens_and_how_full_the_window_is(self, talk: Begin) -> None:
        assert "of the 128,000 tokens" in talk()("/cost")

    def test_processes_are_listed_read_and_ended(self, talk: Begin) -> None:
        person = talk(
            ModelReply("", [call("terminal", command="echo started; exec sleep 1000", background=True)]),
            ModelReply("It runs."),
        )
        person("Start it")
        shown = person("/processes")
        assert "sleep 1000" in shown
        (one,) = [each.id for each in person.chat.app.processes.list() if each.record.ended_at is None]
        assert "ended with exit code 143" in person(f"/processes kill {one}")
        assert "started" in person(f"/processes log {one}")
        assert "/processes kill ID" in person("/processes nonsense")
        assert "no background process" in person("/processes kill nonsense")

    def test_what_was_allowed_in_this_session_is_listed(self, talk: Begin, tmp_path: Path) -> None:
        (tmp_path / "build").mkdir()
        person = talk(ModelReply("", [call("terminal", command="rm -rf build")]), ModelReply("gone"))
        person.approver._decisions.append(Decision.SESSION)
        person("Clean")
        assert not (tmp_path / "build").exists()
        assert "allowed in this session: fs.rm.recursive" in " ".join(person("/approve").split())
        assert "no request" in person("/approve nonsense once").lower()


class Thinking:
    """A model that thinks aloud before it calls, and before it answers."""

    name, context_tokens = "thinking", 100_000

    def __init__(self) -> None:
        self._asked = 0

    async def stream(self, messages: object, tools: object) -> AsyncIterator[Piece]:
        self._asked += 1
        yield ReasoningPiece("The person wants\nto know ")
        yield ReasoningPiece("the \x1b[31mday. " + "Well. " * 200)
        if self._asked % 2:
            yield CallPiece(0, "c1", "terminal", json.dumps({"command": "echo Monday"}))
        else:
            yield TextPiece("It is Monday.")
        yield Finished()


def test_what_a_model_thinks_is_shown_shortened_and_kept_nowhere(talk: Begin) -> None:
    person = talk()
    person.chat.agent.use([Thinking()])
    shown = person("Which day is it?")
    lines = [line for line in shown.splitlines() if line.startswith("Thought for ")]
    assert len(lines) == 2
    assert "The person wants to know the \\x1b[31mday. Well." in lines[0]
    assert shown.count("Well.") < 200
    assert shown.index("Thought for") < shown.index("terminal echo Monday") < shown.index("It is Monday.")
    kept = person.chat.store.messages(person.chat.agent.session_id, hidden=True)
    assert "The person wants" not in json.dumps([each.message for each in kept])


def test_the_person_decides_whether_thoughts_are_shown(talk: Begin) -> None:
    person = talk()
    person.chat.agent.use([Thinking()])
    assert "is hidden" in person("/reasoning off")
    shown = person("Which day is it?")
    assert "The person wants" not in shown
    assert "It is Monday." in shown
    assert "is shown" in person("/reasoning")
    assert "Thought for" in person("And now?")
    assert "/reasoning on, or" in person("/reasoning perhaps")


def test_a_hook_learns_of_every_slash_command_by_its_own_name(talk: Callable[..., Talk]) -> None:
    person = talk("hello")
    hooks, seen = person.chat.app.runtime.hooks, list[Any]()
    hooks.register_hook("pre_command", lambda **payload: seen.append(payload), plugin="noting")
    try:
        for line in ("/rename A  name", "/nothing", "hello"):
            person(line)
        hooks.wait_for_observers()
    finally:
        hooks.unregister_plugin("noting")
    session = person.chat.agent.session_id
    about = {"surface": "cli", "platform": "cli", "session_id": session, "command": "title"}
    assert seen == [{**about, "alias_used": "rename", "args_raw": "A  name"}]

"""A day with `handrail chat` in tmux, and the next one. `UPDATE_PICTURES=1 pytest` draws the documentation's screens anew."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.protocols import ModelReply
from handrail.store.sessions import SessionStore
from handrail.testing import call
from handrail.testing.model_server import ModelServer, Raw

from ..docs.page_blocks import shows
from ..support import PYTHON, wait_until
from ..tmux import PATIENCE_SECONDS, Tmux, need_tmux

CHAT = f"{PYTHON} -m handrail chat"
LONG = f"sleep 9{os.getpid():06d}"  # nobody else's
READY = "auto (Shift-Tab)"  # the toolbar, which stands there only while the person may type


class Desk:
    """A small project, a scripted model, and a person at a terminal of 80 columns."""

    def __init__(self, folder: Path, home: Path, server: ModelServer) -> None:
        self.folder, self.home, self.server = folder, home, server
        self._terminals = 0
        folder.mkdir()
        (folder / "greet.py").write_text('print("Hello")\n')
        (folder / "build").mkdir()
        self.tmux = self._open()

    def _open(self) -> Tmux:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder.parent),
            "HANDRAIL_HOME": str(self.home),
            "HANDRAIL_MODEL": "scripted",
            "OPENAI_BASE_URL": self.server.base_url,
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "HISTFILE": "",
        }
        self._terminals += 1
        return Tmux(self.folder / f".tmux{self._terminals}", cwd=self.folder, env=env, columns=80, rows=40)

    def open_another_terminal(self) -> None:
        self.tmux.end()
        self.tmux = self._open()

    def chat(self, *options: str) -> None:
        self.tmux.type(" ".join(["clear;", CHAT, *options]), "Enter")
        self.tmux.wait_for(READY)

    def say(self, text: str) -> None:
        self.tmux.type("-l", text)
        self.tmux.wait_for(text[-40:])
        self.tmux.type("Enter")

    def answered(self, text: str) -> str:
        """The screen when the agent has said this and the person may type again."""
        return self.tmux.wait_for(text, READY)

    def told(self) -> str:
        """All that the model was sent with the last question."""
        return json.dumps(self.server.requests[-1]["messages"], ensure_ascii=False)

    def runs(self, command: str) -> bool:
        """Whether a process with this command line runs somewhere."""
        wanted = b"".join(word.encode() + b"\0" for word in command.split())
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has just ended
                if path.read_bytes() == wanted:
                    return True
        return False


@pytest.fixture
def desk(home: Path) -> Iterator[Desk]:
    need_tmux()
    ada = Path(tempfile.mkdtemp(prefix="ada-"))  # short, so that it fits into a line of the screen
    with ModelServer() as server:
        desk = Desk(ada / "shop", home, server)
        yield desk
        desk.tmux.end()
    wait_until(lambda: _is_removed(ada))


def _is_removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)  # what ends may still write there
    return not folder.exists()


def picture(desk: Desk, name: str, screen: str, *, since: str) -> None:
    """The screen from a line on, with what differs from run to run made the same, is what the documentation shows."""
    shown = screen[screen.index(since) :]
    shown = shown.replace(str(desk.folder), "/home/ada/shop")
    shown = re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}", "20261116-091207-3f9c21", shown)
    shown = re.sub(r"\(\d+(\.\d)? m?s\)", "(0.1 s)", shown)
    shown = re.sub(r"· \d+ s( · Esc stops it)?$", "· 2 s", shown, flags=re.MULTILINE)
    shown = re.sub(r"approvals answer [0-9a-f]{8}", "approvals answer 3f9c21ab", shown)
    shown = re.sub(r"Auto-deny in [1-5]:\d\d", "Auto-deny in 5:00", shown)
    shown = re.sub(r"^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "⠹", shown, flags=re.MULTILINE)
    shown = re.sub(r"\d% context", "0% context", shown)  # which tools there are depends on the machine
    shown = shown.replace(LONG, "sleep 86399")
    shown = re.sub(r" +$", "", shown, flags=re.MULTILINE).rstrip("\n") + "\n"
    assert shows("tutorial/chat.md", name, shown)


def test_two_days_with_an_agent(desk: Desk) -> None:
    desk.chat()
    _edits_a_file_and_runs_it(desk)
    _is_denied_something_dangerous(desk)
    _delegates(desk)
    _is_interrupted(desk)
    desk.tmux.type("C-d")
    desk.tmux.wait_for("Continue with: ")
    _a_night_passes(desk)
    _goes_on_the_next_day(desk)


def _edits_a_file_and_runs_it(desk: Desk) -> None:
    desk.server.say(
        ModelReply("I look at the program first.", [call("read_file", path="greet.py")]),
        ModelReply("", [call("patch", path="greet.py", old_string="Hello", new_string="Good day")]),
        ModelReply("", [call("terminal", command="python3 greet.py")]),
        ModelReply("Done: `greet.py` says **Good day** now.\n\n- the text is in one place\n- nothing else used it"),
    )
    desk.say("Make the greeting more formal")
    screen = desk.answered("nothing else used it")
    assert (desk.folder / "greet.py").read_text() == 'print("Good day")\n'
    assert '1 - print("Hello")' in screen
    assert '1 + print("Good day")' in screen
    assert "**" not in screen
    assert "Good day" in desk.told()
    picture(desk, "edit", screen[: screen.rindex("›")], since="› Make the greeting")


def _is_denied_something_dangerous(desk: Desk) -> None:
    desk.server.say(
        ModelReply("", [call("terminal", command="rm -rf build")]),
        ModelReply("You did not want that, so the folder is still there."),
    )
    desk.tmux.type("C-l")
    desk.say("Clean up")
    screen = desk.tmux.wait_for("once, try, task, session, always, deny, edit, instead?")
    picture(desk, "approval", screen, since="› Clean up")
    desk.tmux.type("-l", "deny")
    desk.tmux.type("Enter")
    screen = desk.answered("the folder is still there")
    assert "✗ 💻 terminal rm -rf build" in screen
    assert (desk.folder / "build").is_dir()
    assert "denied" in desk.told()


def _delegates(desk: Desk) -> None:
    desk.server.say(
        ModelReply("", [call("delegate_task", goal="Count the Python files of this folder.")]),
        ModelReply("", [call("terminal", command="ls *.py | wc -l")]),
        ModelReply("There is 1 Python file: greet.py."),
        ModelReply("A child agent counted: one file."),
    )
    desk.tmux.type("C-l")
    desk.say("Let somebody count the files")
    screen = desk.answered("A child agent counted")
    assert "completed: There is 1 Python file: greet.py." in screen
    picture(desk, "delegate", screen[: screen.rindex("›")], since="› Let somebody")


def _is_interrupted(desk: Desk) -> None:
    desk.server.say(
        ModelReply("", [call("terminal", command=f"echo warming up; {LONG}", timeout=500)]),
        ModelReply("All right, I leave it."),
    )
    desk.tmux.type("C-l")
    desk.say("Train the model")
    screen = desk.tmux.wait_for(f"💻 terminal echo warming up; {LONG} ·", "    warming up")
    picture(desk, "running", screen, since="› Train the model")
    wait_until(lambda: desk.runs(LONG))
    desk.tmux.type("Escape")
    screen = desk.answered("Interrupted by you.")
    assert "Stopped; output so far:" in screen
    assert screen.count("    warming up") == 1
    wait_until(lambda: not desk.runs(LONG))
    desk.say("Never mind")
    desk.answered("All right, I leave it.")
    assert "the user interrupted" in desk.told()
    assert "Never mind" in desk.told()


def _a_night_passes(desk: Desk) -> None:
    with sqlite3.connect(desk.home / "state" / "sessions.db") as database:
        database.execute("UPDATE sessions SET created = created - 86400, updated = updated - 86400")
    database.close()
    desk.open_another_terminal()


def _goes_on_the_next_day(desk: Desk) -> None:
    desk.server.say(ModelReply("Yesterday I made the greeting more formal."))
    desk.chat("--continue")
    screen = desk.tmux.screen()
    assert "Make the greeting more formal, in" in screen
    assert "All right, I leave it." in screen
    desk.say("What did we do?")
    screen = desk.answered("Yesterday I made")
    assert "Make the greeting more formal" in desk.told()
    assert "rm -rf build" in desk.told()
    picture(desk, "next-day", screen[: screen.rindex("›")], since="Handrail ")
    desk.say("/resume")
    assert "1d 0h" not in desk.answered("(this one)"), "it was used just now"


def test_a_window_that_is_resized_while_text_pours_in_loses_nothing(desk: Desk) -> None:
    resized = threading.Event()
    counted = 0

    def words() -> Iterator[dict[str, str]]:
        nonlocal counted
        while not resized.is_set() or counted < 4000:
            yield {"content": "".join(f"word{number} " for number in range(counted, counted + 10))}
            counted += 10
            if counted % 150 == 0:
                yield {"content": "\n\n"}
            time.sleep(0.005)  # faster than models are
        yield {"content": "\n\nThe end of it."}

    desk.server.say(Raw(words()))
    desk.chat()
    desk.say("Talk")
    desk.tmux.wait_for("word100")
    sizes = itertools.product((30, 120, 50, 80, 100), (12, 40, 20, 30))
    for columns, rows in itertools.islice(itertools.cycle(sizes), 200):
        desk.tmux.resize(columns, rows)
    desk.tmux.resize(30, 12)
    resized.set()
    desk.answered("The end of it.")
    shown = "".join(desk.tmux.screen(history=True).split("\n"))
    assert set(range(counted)) <= {int(number) for number in re.findall(r"word(\d+)", shown)}
    desk.server.say(ModelReply("Still here."))
    desk.say("And now?")
    desk.answered("Still here.")


def test_a_question_of_the_agent_is_answered_or_interrupted(desk: Desk) -> None:
    question = ModelReply("", [call("clarify", question="Which colour?", choices=["red", "blue"])])
    desk.server.say(question, ModelReply("Blue it is."), question, ModelReply("Then none."))
    desk.chat()
    desk.say("Paint it")
    desk.tmux.wait_for("1-2, or your own words:")
    desk.tmux.type("2", "Enter")
    desk.answered("Blue it is.")
    assert "blue" in desk.told()
    desk.tmux.type("C-l")
    desk.say("Paint it again")
    desk.tmux.wait_for("1-2, or your own words:")
    desk.tmux.type("C-c")
    desk.answered("Interrupted by you.")
    desk.say("What is typed now is for the agent")
    desk.answered("Then none.")
    assert "What is typed now is for the agent" in desk.told()


def _waiting(desk: Desk, reply: ModelReply) -> threading.Event:
    """The model gives this reply when it is told to."""
    go_on = threading.Event()

    def answer(*_: object) -> ModelReply:
        go_on.wait(PATIENCE_SECONDS)
        return reply

    desk.server.say(answer)
    return go_on


def test_what_is_typed_while_the_agent_works_is_shown_and_said_next(desk: Desk) -> None:
    first = _waiting(desk, ModelReply("The first answer."))
    desk.server.say(ModelReply("The second answer."))
    desk.chat()
    desk.say("Begin")
    desk.tmux.wait_for("is thinking")
    desk.tmux.type("-l", "And then tgis")
    desk.tmux.type("BSpace", "BSpace", "BSpace", "Left")
    desk.tmux.type("-l", "his")
    desk.tmux.wait_for("› And then this")
    desk.tmux.type("Enter")
    desk.tmux.wait_for("› And then this (sent)")
    desk.tmux.type("-l", "half a li")
    desk.tmux.wait_for("› half a li")
    first.set()
    desk.tmux.wait_for("The second answer.", "› half a li", READY)
    assert "And then this" in desk.told()
    assert "half a li" not in desk.told()
    third = _waiting(desk, ModelReply("Never seen."))
    desk.tmux.type("-l", "ne")
    desk.tmux.type("Enter")
    desk.tmux.wait_for("is thinking")
    desk.tmux.type("-l", "not now")
    desk.tmux.type("Enter")
    desk.tmux.wait_for("› not now (sent)")
    desk.tmux.type("C-c")
    desk.tmux.wait_for("Interrupted by you.", "› not now", READY)
    third.set()
    assert "half a line" in desk.told()
    assert "not now" not in desk.told()


def test_what_is_typed_before_there_is_a_prompt_is_said(desk: Desk) -> None:
    desk.server.say(ModelReply("You were quick."))
    desk.tmux.type(f"clear; {CHAT}", "Enter", "Are you there?", "Enter", "And then")
    screen = desk.tmux.wait_for("You were quick.", "› And then", READY)
    assert screen.count("› Are you there?") == 1
    assert desk.server.requests[0]["messages"][-1]["content"] == "Are you there?"


def test_what_was_typed_ahead_answers_no_question(desk: Desk) -> None:
    asking = _waiting(desk, ModelReply("", [call("clarify", question="Which colour?", choices=["red", "blue"])]))
    desk.server.say(ModelReply("Red it is."))
    desk.chat()
    desk.say("Paint it")
    desk.tmux.wait_for("is thinking")
    desk.tmux.type("2", "Enter")
    desk.tmux.wait_for("› 2 (sent)")
    asking.set()
    desk.tmux.wait_for("1-2, or your own words:")
    desk.tmux.type("1", "Enter")
    desk.answered("Red it is.")
    assert "\n› 2\n" in desk.tmux.screen(), "what was said meanwhile stays in the conversation"
    answers = [message["content"] for message in desk.server.requests[-1]["messages"] if message["role"] == "tool"]
    assert "red" in answers[0]
    assert desk.server.requests[-1]["messages"][-1]["content"] == "[The user says while you work] 2"


def test_a_terminal_that_is_closed_in_mid_call_leaves_nothing_behind(desk: Desk) -> None:
    desk.server.say(
        ModelReply("I begin.", [call("terminal", command=LONG, timeout=500)]),
        ModelReply("It was cut off, I see."),
    )
    desk.chat()
    desk.say("Work")
    wait_until(lambda: desk.runs(LONG), timeout=PATIENCE_SECONDS)
    desk.tmux.end()
    wait_until(lambda: not desk.runs(LONG), timeout=PATIENCE_SECONDS)
    desk.open_another_terminal()
    desk.chat("--continue")
    desk.say("What happened?")
    desk.answered("It was cut off")
    assert LONG in desk.told()


def test_a_terminal_that_is_closed_in_mid_stream_keeps_what_was_written(desk: Desk) -> None:
    closed = threading.Event()

    def deltas() -> Iterator[dict[str, str]]:
        yield {"content": "Once upon a time"}
        closed.wait(PATIENCE_SECONDS)

    desk.server.say(lambda messages, tools: Raw(deltas()))  # type: ignore[arg-type, return-value]
    desk.chat()
    desk.say("Tell me a story")
    desk.tmux.wait_for("Once upon a time")
    desk.tmux.end()
    store = SessionStore(desk.home / "state" / "sessions.db")
    wait_until(lambda: "Once upon" in str(store.messages(store.recent()[0].id)[-1]), timeout=PATIENCE_SECONDS)
    closed.set()
    store.close()

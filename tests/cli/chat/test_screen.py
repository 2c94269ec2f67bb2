"""The screen, drawn by a terminal emulator: what stands below never stays behind."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path
from types import SimpleNamespace

import pyte
import pytest
from rich.text import Text

from handrail.agent.events import MessageEnded, TextDelta, Usage
from handrail.cli.chat import screen as module
from handrail.cli.chat.screen import Screen
from handrail.cli.chat.view import View
from handrail.core.registry import ToolRegistry

from ...tmux import Tmux, need_tmux


class Emulator:
    """A terminal of a given size that can be written to."""

    def __init__(self, columns: int = 40, rows: int = 10) -> None:
        self.pyte = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.Stream(self.pyte)
        self.fails = False
        self.wrote = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        if self.fails:
            raise OSError(5, "Input/output error")
        self.wrote += text
        self._stream.feed(text.replace("\n", "\r\n"))

    def flush(self) -> None: ...

    def fileno(self) -> int:
        raise OSError("it has no descriptor")

    @property
    def lines(self) -> list[str]:
        shown = [line.rstrip() for line in self.pyte.display]
        while shown and not shown[-1]:
            shown.pop()
        return shown


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    emulator = Emulator()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")

    def size(*_: object) -> os.terminal_size:
        return os.terminal_size((emulator.pyte.columns, emulator.pyte.lines))

    # Of the module alone: pytest looks at the size of its own terminal meanwhile.
    monkeypatch.setattr(module, "shutil", SimpleNamespace(get_terminal_size=size))
    return emulator


@pytest.fixture
def screen(emulator: Emulator) -> Screen:
    return Screen(emulator)  # type: ignore[arg-type]


def test_what_is_written_goes_above_the_lines_that_change(screen: Screen, emulator: Emulator) -> None:
    screen.below([Text("working"), Text("  line 1")])
    screen.write("done\n")
    assert emulator.lines == ["done", "working", "  line 1"]
    screen.below([Text("still")])
    assert emulator.lines == ["done", "still"]
    screen.below(())
    assert emulator.lines == ["done"]


def test_a_line_below_is_cut_at_the_edge(screen: Screen, emulator: Emulator) -> None:
    screen.below([Text("x" * 100), Text("y")])
    assert emulator.lines == ["x" * 37 + "…", "y"]


def test_a_line_below_is_one_line_on_a_wide_screen_too(screen: Screen, emulator: Emulator) -> None:
    emulator.pyte.resize(10, 200)
    for _ in range(2):
        screen.below([Text("x" * 300), Text("y" * 150)])
    assert emulator.lines == ["x" * 117 + "…", "y" * 117 + "…"]


def test_more_lines_than_fit_leave_the_last_ones(screen: Screen, emulator: Emulator) -> None:
    for _ in range(3):
        screen.below([Text(f"line {number}") for number in range(30)])
    assert emulator.lines == [f"line {number}" for number in range(22, 30)]
    screen.below(())
    assert emulator.lines == []


def test_lines_that_a_narrower_window_wrapped_are_taken_away_too(screen: Screen, emulator: Emulator) -> None:
    screen.write("kept\n")
    screen.below([Text("a" * 30), Text("b" * 30)])
    # What tmux does when a window gets narrower: each line takes two rows now, and the cursor stays where it was in the text.
    emulator.pyte.resize(10, 20)
    emulator._stream.feed("\x1b[2J\x1b[H" + "\r\n".join(["kept", "a" * 20, "a" * 10, "b" * 20, "b" * 10]) + "\x1b[2;1H")
    screen.below([Text("short")])
    assert emulator.lines == ["kept", "short"]


@pytest.mark.parametrize("columns", [20, 80])
def test_a_window_that_changes_before_the_terminal_has_read_everything_loses_nothing(
    screen: Screen, emulator: Emulator, columns: int
) -> None:
    """The size is asked for before the terminal draws what was written for it."""
    screen.write("kept\n")
    drawn, emulator.write = emulator.write, (late := []).append  # type: ignore[method-assign]
    screen.below([Text("a" * 30), Text("")])
    screen.write("kept, too\n")
    screen.below([Text("b" * 30), Text("c" * 30), Text("")])
    emulator.pyte.resize(10, columns)
    for text in late:
        drawn(text)
    emulator.write = drawn  # type: ignore[method-assign]
    screen.below([Text("short")])
    assert emulator.lines == ["kept", "kept, too", "short"]
    assert emulator.pyte.cursor.hidden
    screen.below(())
    assert not emulator.pyte.cursor.hidden


def test_what_is_being_written_is_set_and_what_stays_below_is_not_taken_away_for_a_moment(
    screen: Screen, emulator: Emulator
) -> None:
    view = View(screen, ToolRegistry(), SimpleNamespace(lines=lambda *_: []))  # type: ignore[arg-type]
    view.status_line = lambda: "status"
    view.listen(TextDelta("One\n\nTwo"))
    view.draw()
    assert emulator.lines == ["One", "", "Two", "status"]
    view.listen(MessageEnded({}, Usage()))
    assert emulator.lines[-3:] == ["Two", "", "status"]
    view.end()
    assert emulator.lines[-1] == "Two"


def test_a_terminal_keeps_nothing_of_the_lines_below_in_its_history(tmp_path: Path) -> None:
    need_tmux()
    (tmp_path / "draws.py").write_text(_DRAWS)
    tmux = Tmux(tmp_path / "socket", cwd=tmp_path, env={"PYTHONPATH": ":".join(sys.path)}, columns=80, rows=24)
    try:
        tmux.type(f"clear; exec {sys.executable} draws.py", "Enter")
        tmux.wait_for("kept 20", "frame")
        tmux.resize(60, 24)
        screen = tmux.wait_for("the end", history=True)
    finally:
        tmux.end()
    assert screen.count("frame") <= 9  # one drawing may be under way while the terminal changes its size
    assert screen.count("kept ") == 20


_DRAWS = """
import time
from rich.text import Text
from handrail.cli.chat.screen import Screen
screen, narrow = Screen(), 0
def draw(number):
    screen.below([Text(f"frame {number} in {screen.size[0]} columns " + "x" * 45) for _ in range(9)])
    time.sleep(0.01)
for number in range(10):  # at the top of the terminal
    draw(number)
for number in range(1, 21):
    screen.write(f"kept {number}\\n")
while narrow < 10:
    draw(number)
    narrow += screen.size[0] == 60
screen.below(())
screen.print("the end")
time.sleep(60)
"""


def test_while_somebody_asks_nothing_else_is_written(screen: Screen, emulator: Emulator) -> None:
    screen.below([Text("working")])
    with screen.held():
        assert emulator.lines == []
        screen.write("late\n")
        screen.below([Text("working")])
        assert emulator.lines == []
    assert emulator.lines == ["late"]


def test_a_terminal_that_cannot_move_its_cursor_gets_lines_only(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen(emulator)  # type: ignore[arg-type]
    screen.below([Text("working")])
    screen.markdown("**bold** \x1b[2J")
    assert emulator.wrote == "**bold** \\x1b[2J\n"


def test_no_colour_is_no_escape_sequence(screen: Screen, emulator: Emulator) -> None:
    screen.markdown("# Title\n\n**bold** `code`\n\n```python\nx = 1\n```")
    screen.print(Text("red", "red"))
    assert "\x1b" not in emulator.wrote


def test_a_terminal_that_went_away_takes_everything_in_silence(screen: Screen, emulator: Emulator) -> None:
    screen.below([Text("working")])
    emulator.fails = True
    screen.write("nobody sees this\n")
    screen.below([Text("nor this")])


def test_the_keyboard_needs_no_terminal() -> None:
    with module.keyboard(shown=False, by_key=True):
        pass


def test_a_terminal_that_is_gone_before_its_signal_comes_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written stays in the buffer, and everything that is drawn later flushes it."""
    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = pty.openpty()
    with open(slave, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        screen = Screen(stream)
        os.close(master)
        screen.write("lost\n")
        assert screen.rendered(Text("drawn")) == "drawn\n"
        stream.flush()

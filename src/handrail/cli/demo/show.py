"""Show the demonstration: in colours on a terminal, as plain text elsewhere, never wider than the screen."""

from __future__ import annotations

import json
import os
import sys
import termios
import textwrap
import tty
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from ...core.outcome import parsed
from ...core.registry import ToolRegistry
from ...testing import ScriptedModel
from ...types import JsonDict
from ..call_text import DIFF_STYLES, TODO_MARKS, UNDONE, duration, main_argument, other_arguments
from ..output import emit, typed, visible
from .stage import Scene, Stage, Turn, read_scenes, set_stage

_MAX_WIDTH = 100
_LABEL = "{:7}"
_FIRST_CALL = "call read_file path=README.md"
# Lines of a result that are shown, by how many calls share the turn.
_EXCERPT_LINES = {1: 9, 2: 9}
_EXCERPT_LINES_IN_A_CROWD = 4


class Show:
    """Prints one line after the other; each is cut at the screen's edge, and text of the model is wrapped."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
        self._width = min(self._console.width, _MAX_WIDTH) - 1

    def opening(self, task: str, tools: list[str]) -> None:
        self._wrapped("", "A scripted model uses real tools, in a folder that is gone afterwards.", "bold")
        self._wrapped(_LABEL.format("tools"), ", ".join(tools), "dim")
        self._wrapped(_LABEL.format("user"), task, "bold")

    def scene(self, number: int, scene: Scene) -> None:
        self._line(Text())
        title = Text.assemble((f"── {number} {scene.title} ", "bold cyan"))
        self._line(title.append("─" * max(0, self._width - title.cell_len), "cyan"))
        self._wrapped("", scene.look, "dim italic")

    def says(self, text: str) -> None:
        self._wrapped(_LABEL.format("model"), text, "")

    def notice(self, text: str) -> None:
        """A notice that the runtime sends to the model."""
        first, *lines = text.splitlines()
        self._wrapped(_LABEL.format("notice"), first, "yellow")
        for line in lines:
            self._line(Text(" " * len(_LABEL.format(""))).append(visible(line), "dim"))

    def turn(self, calls: list[JsonDict], turn: Turn, registry: ToolRegistry) -> None:
        max_lines = _EXCERPT_LINES.get(len(calls), _EXCERPT_LINES_IN_A_CROWD)
        for call, message in zip(calls, turn.messages, strict=True):
            self._call(call, message, turn.times.get(call["id"], 0.0), registry)
            for line in excerpt(message["content"], max_lines=max_lines):
                self._result(line)

    def together(self, turn: Turn) -> None:
        """What running at the same time was good for."""
        times = [turn.times[message["tool_call_id"]] for message in turn.messages]
        at_once = f"   {len(times)} calls at once took {duration(turn.took_ms)}"
        self._line(Text.assemble((at_once, "green"), (f"; one after the other: {duration(sum(times))}", "dim")))

    def closing(self, calls: int, *, more: int) -> None:
        self._line(Text())
        self._line(Text(f"{calls} calls. Nothing is left behind.", "dim"))
        # Whole, however narrow the screen: they are there to be copied.
        self._line(Text("Try next:"))
        for arguments in (*(["demo --all"] if more else []), "tools", _FIRST_CALL):
            emit(f"  {typed(arguments)}")

    def wait(self) -> None:
        """Wait for a key."""
        before = termios.tcgetattr(0)
        try:
            tty.setcbreak(0, termios.TCSANOW)  # nothing that was typed is lost
            emit("[press any key] ", sys.stderr, end="")
            os.read(0, 1024)  # an arrow key is several characters
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
        emit("", sys.stderr)

    def _call(self, call: JsonDict, message: JsonDict, took_ms: float, registry: ToolRegistry) -> None:
        function = call["function"]
        name = function["name"]
        failed = bool((parsed(message["content"]) or {}).get("error"))
        took = f" {duration(took_ms)}"
        line = Text("   ").append(f"{registry.get_emoji(name)} ").append(name, "bold")
        arguments = json.loads(function["arguments"])
        if about := main_argument(registry, name, arguments, max_chars=40):
            line.append(f" {about}")
        if others := other_arguments(registry, name, arguments):
            line.append(f" {others}", "dim")
        room = self._width - len(took) - 2
        line.truncate(room, overflow="ellipsis", pad=True)
        self._line(line.append(" ✗" if failed else " ✓", "red" if failed else "green").append(took, "dim"))

    def _result(self, line: Line) -> None:
        margin = Text.assemble(("      │ ", "dim"))
        wraps = line.style == "red"  # errors are shown whole, the rest is cut
        for part in textwrap.wrap(line.text, self._width - len(margin)) if wraps else [line.text]:
            self._line(margin.copy().append(part, line.style))

    def _wrapped(self, label: str, text: str, style: str) -> None:
        for number, part in enumerate(textwrap.wrap(text, self._width - len(label))):
            self._line(Text.assemble((label if not number else " " * len(label), "cyan"), (part, style)))

    def _line(self, text: Text) -> None:
        text.truncate(self._width, overflow="ellipsis")
        with self._console.capture() as captured:
            self._console.print(text, no_wrap=True)
        emit(captured.get(), end="")


class Line(NamedTuple):
    text: str
    style: str = "dim"


def excerpt(content: str, *, max_lines: int) -> list[Line]:
    """A result in at most so many lines."""
    lines = list(_lines(parsed(content) or {}))
    if len(lines) <= max_lines:
        return lines
    return [*lines[: max_lines - 1], Line(f"… {len(lines) - max_lines + 1} more lines")]


def _lines(result: dict[str, Any]) -> Iterator[Line]:
    if result.get("error"):
        yield Line(f"{result.get('error_type', 'error')}: {visible(result['error'])}", "red")
        return
    for item in result.get("todos", ()):
        yield Line(f"{TODO_MARKS[item['status']]} {item['content']}", "dim" if item["status"] == "completed" else "")
    for match in result.get("matches", ()):
        yield Line(":".join(visible(str(value)) for value in match.values()))
    if "matches" in result:
        yield Line(f"{result.get('total_matches', result.get('total'))} in all")
    for line in str(result.get("diff", "")).splitlines():
        if not line.startswith(("---", "+++")):
            yield Line(visible(line), DIFF_STYLES.get(line[:1], "dim"))
    yield from _text(result)
    for key, done in UNDONE.items():
        for path in result.get(key, ()):
            yield Line(f"{done}: {visible(path.rpartition('/')[2])}", "green")
    if "status" in result:
        waits = ", waits for input" if result.get("waiting_for_input") else ""
        yield Line(f"{result['session_id']} {result['status']}{waits}", "cyan")


def _text(result: dict[str, Any]) -> Iterator[Line]:
    text = str(result.get("content") or result.get("output") or "")
    for stored in result.get("stored", {}).values():
        first, *_, last = text.strip().splitlines()
        yield from (Line(visible(first)), Line("[…]"), Line(visible(last)))
        yield Line(f"{stored['chars']:,} characters in {stored['lines']:,} lines are kept as {stored['id']}", "cyan")
        return
    for line in text.splitlines():
        if line.strip():
            yield Line(visible(line))
    if "exit_code" in result:
        yield Line(f"exit code {result['exit_code']}", "green" if result["exit_code"] == 0 else "red")


def play(*, everything: bool = False) -> None:
    """The demonstration, from an empty folder back to none.

    At a terminal it pauses for a key after each scene, and shows the highlights unless `everything` is wanted. Elsewhere it
    shows everything, without a pause.
    """
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    task, every = read_scenes()
    playable = [scene for scene in every if not scene.needs or find_spec(scene.needs) is not None]
    scenes = [scene for scene in playable if everything or scene.is_highlight or not at_terminal]
    model = ScriptedModel(reply for scene in scenes for reply in scene.replies)
    show = Show()
    messages: list[JsonDict] = [{"role": "user", "content": task}]
    with set_stage() as stage:
        show.opening(task, [tool["function"]["name"] for tool in stage.tools])
        for number, scene in enumerate(scenes, 1):
            if at_terminal and number > 1:
                show.wait()
            show.scene(number, scene)
            for reply in range(len(scene.replies)):
                for notice in stage.notices() if reply == scene.notice_before else ():
                    messages.append({"role": "user", "content": notice})
                    show.notice(notice)
                _turn(stage, scene, model, messages, show)
    calls = sum(message["role"] == "tool" for message in messages)
    show.closing(calls, more=len(playable) - len(scenes))


def _turn(stage: Stage, scene: Scene, model: ScriptedModel, messages: list[JsonDict], show: Show) -> None:
    reply = model.reply(messages, stage.tools)
    calls = [dict(call) for call in reply.tool_calls]
    messages.append({"role": "assistant", "content": reply.content, "tool_calls": calls})
    show.says(reply.content)
    if not calls:
        return
    turn = stage.run(calls, slow_disk=scene.on_slow_disk)
    messages.extend(turn.messages)
    show.turn(calls, turn, stage.registry)
    if scene.on_slow_disk:
        show.together(turn)

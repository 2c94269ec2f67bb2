"""Show the demonstration: in colours on a terminal, as plain text elsewhere, never wider than the screen."""

import json
import os
import sys
from importlib.util import find_spec

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...agent.events import ToolEnded, ToolStarted
from ...core.outcome import error_of
from ...testing import ScriptedModel
from ...types import JsonDict
from ..call_text import duration
from ..chat.calls import Call
from ..chat.screen import Screen, keyboard
from ..output import emit, typed, visible
from .stage import Scene, Stage, read_scenes, set_stage

_FIRST_CALL = "call read_file path=README.md"


class Show:
    """Prints one thing after the other; a call looks as it does in the chat."""

    def __init__(self) -> None:
        self._screen = Screen()

    def opening(self, task: str, tools: list[str]) -> None:
        self._print(Text("A scripted model uses real tools, in a folder that is gone afterwards.", "bold"))
        self.labelled("tools", ", ".join(tools), "dim")
        self.labelled("user", task, "bold")

    def scene(self, number: int, scene: Scene) -> None:
        title = Text(f"── {number} {scene.title} ", "bold cyan")
        emit("")
        self._print(title.append("─" * max(0, self._screen.width - title.cell_len), "cyan"))
        self._print(Text(scene.look, "dim italic"))

    def turn(self, calls: list[JsonDict], messages: list[JsonDict], stage: Stage) -> None:
        registry = stage.registry
        for call, message in zip(calls, messages, strict=True):
            name, content = call["function"]["name"], message["content"].replace(f"{stage.folder}/", "")
            seconds = stage.stopwatch.times.get(call["id"], 0.0) / 1000
            arguments = json.loads(call["function"]["arguments"])
            started = ToolStarted(call["id"], name, arguments, registry.get_emoji(name))
            ended = ToolEnded(call["id"], name, content, str((error_of(content) or {}).get("error_type", "")), seconds)
            self._print(*Call(started, registry, width=self._screen.width - 3).ended(ended), indent=3)

    def together(self, times: list[float], took_ms: float) -> None:
        """What running at the same time was good for."""
        at_once = f"{len(times)} calls at once took {duration(took_ms)}"
        both = Text.assemble((at_once, "green"), (f"; one after the other: {duration(sum(times))}", "dim"))
        self._print(both, indent=3)

    def closing(self, calls: int, *, more: int) -> None:
        emit("")
        self._print(Text(f"{calls} calls. Nothing is left behind.", "dim"), Text("Try next:"))
        # Whole, however narrow the screen: they are there to be copied.
        for arguments in (*(["demo --all"] if more else []), "tools", _FIRST_CALL):
            emit(f"  {typed(arguments)}")

    def wait(self) -> None:
        """Wait for a key."""
        with keyboard(shown=False, by_key=True):
            emit("[press any key] ", sys.stderr, end="")
            os.read(0, 1024)  # an arrow key is several characters
        emit("", sys.stderr)

    def labelled(self, label: str, text: str, style: str = "") -> None:
        row = Table.grid()
        row.add_row(Text(f"{label:7}", "cyan"), Text(visible(text), style))
        self._print(row)

    def _print(self, *parts: RenderableType, indent: int = 0) -> None:
        for part in parts:
            emit(self._screen.rendered(Padding(part, (0, 0, 0, indent))), end="")


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
                    show.labelled("notice", notice, "yellow")
                _turn(stage, scene, model, messages, show)
    show.closing(sum(message["role"] == "tool" for message in messages), more=len(playable) - len(scenes))


def _turn(stage: Stage, scene: Scene, model: ScriptedModel, messages: list[JsonDict], show: Show) -> None:
    reply = model.reply(messages, stage.tools)
    calls = [dict(call) for call in reply.tool_calls]
    messages.append({"role": "assistant", "content": reply.content, "tool_calls": calls})
    show.labelled("model", reply.content)
    if not calls:
        return
    answers, took_ms = stage.run(calls, slow_disk=scene.on_slow_disk)
    messages.extend(answers)
    show.turn(calls, answers, stage)
    if scene.on_slow_disk:
        show.together([stage.stopwatch.times[each["tool_call_id"]] for each in answers], took_ms)

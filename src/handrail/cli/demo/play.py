"""Let the model and the tools talk, scene by scene."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from ...testing import ScriptedModel
from ...types import JsonDict
from .scenes import Scene, read_scenes
from .show import Show
from .stage import Stage, set_stage


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
                if reply == scene.notice_before:
                    _take_notices(stage, messages, show)
                _turn(stage, scene, model, messages, show)
    calls = sum(message["role"] == "tool" for message in messages)
    show.closing(calls, more=len(playable) - len(scenes))


def _take_notices(stage: Stage, messages: list[JsonDict], show: Show) -> None:
    for notice in stage.notices():
        messages.append({"role": "user", "content": notice})
        show.notice(notice)


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

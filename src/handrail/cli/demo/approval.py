"""The scenes with the gate: a person says no, then yes; and what nobody can allow. The person is played too."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from ...approval.approvers.prompt import question
from ...core.registry import ToolRegistry
from ...errors import Denied
from ...protocols import Action, ActionKind, ApprovalRequest, Decision
from ...testing import ModelReply, call
from ...types import JsonDict
from ..output import colours, emit
from .scenes import Scene

_MAX_WIDTH = 100
# The one command that the person allows. The tool runs no other: a demonstration must not hang on the gate alone.
_ALLOWED = "rm -rf build"


def a_question() -> Scene:
    return Scene(
        "A person is asked",
        "Deleting asks. The person sees what would run; `shop` is the program itself.",
        [
            ModelReply("Something old may be left. I clean up.", [call("shell", command="rm -rf build shop")]),
            ModelReply("Only what can be made again, then.", [call("shell", command=_ALLOWED)]),
        ],
    )


def what_nobody_can_allow() -> Scene:
    return Scene(
        "What nobody can allow",
        "No question, no setting and no --yolo lets this run.",
        [ModelReply("Shall I make more room?", [call("shell", command="cd / && rm -rf ./*")])],
    )


class PlayedPerson:
    """Answers from a list, at a prompt like the one that a person gets."""

    name = "person"

    def __init__(self, answers: list[Decision]) -> None:
        self._answers = answers

    def decide(self, request: ApprovalRequest) -> Decision:
        answer = self._answers.pop(0)
        width = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 1
        emit(question(request._replace(id=""), width=width, painted=colours(sys.stdout)), end="")
        emit(f"  {', '.join(decision.value for decision in request.offers)}? {answer.value}")
        return answer


def add_shell(registry: ToolRegistry, folder: Path) -> None:
    """A tool that runs commands in the project, and says so to the gate before."""

    def run(args: JsonDict, **_: object) -> JsonDict:
        if args["command"] != _ALLOWED:
            raise Denied("the demonstration runs nothing else")
        done = subprocess.run(
            ["bash", "-c", args["command"]], cwd=folder, capture_output=True, text=True, check=False, timeout=15
        )
        return {"exit_code": done.returncode, "output": done.stdout + done.stderr}

    command = {"type": "string", "description": "What bash is to run."}
    registry.register(
        name="shell",
        toolset="demo",
        schema={
            "description": "Run a command in the project.",
            "parameters": {"type": "object", "properties": {"command": command}, "required": ["command"]},
        },
        handler=run,
        emoji="🐚",
        timeout=20,
        actions=lambda args, _: [Action(ActionKind.COMMAND, args["command"], str(folder))],
    )

"""A runtime with a shell-like tool that only notes what it would run, and short ways to ask its gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from handrail.approval.gate import ApprovalGate
from handrail.approval.settings import Settings
from handrail.core.registry import ToolRegistry
from handrail.errors import Denied
from handrail.protocols import Action, ActionKind, ApprovalRequest, Approver
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.sections import ApprovalsConfig
from handrail.types import ToolContext

CWD = "/srv/app"
# One command of each kind, as the judge sees them in CWD.
HARMLESS = "ls -la"
IN_PROJECT = "rm -rf build"
IN_HOME = "rm -rf ~/pictures"
UNKNOWN = '"$TOOL" -rf build'
FORBIDDEN = "rm -rf /"
REMOTE = "git push --force origin main"


def command(text: str, **more: Any) -> Action:
    return Action(ActionKind.COMMAND, text, **{"cwd": CWD, **more})


def gate(folder: Path | None = None, **approvals: Any) -> ApprovalGate:
    """A gate with these settings under `approvals`; `allowlist` is the configuration's `command_allowlist`."""
    allowlist = approvals.pop("allowlist", ())
    yolo = approvals.pop("yolo", False)
    more = {name: approvals.pop(name) for name in ("smart", "path") if name in approvals}
    path = more.pop("path", None)
    config = Config(approvals=ApprovalsConfig(**approvals), command_allowlist=tuple(allowlist))
    settings = Settings(path=path, yolo=yolo) if path is not None else Settings(config, yolo=yolo)
    return ApprovalGate(settings, folder=folder, **more)


def review(
    gate: ApprovalGate, *texts: str | Action, approver: Approver | None = None, tool: str = "terminal", **who: Any
) -> str:
    """ "allowed", or the text of the denial."""
    return asyncio.run(areview(gate, *texts, approver=approver, tool=tool, **who))


async def areview(
    gate: ApprovalGate, *texts: str | Action, approver: Approver | None = None, tool: str = "terminal", **who: Any
) -> str:
    actions = [text if isinstance(text, Action) else command(text) for text in texts]
    try:
        waiting = gate.review(actions, ToolContext(tool=tool, approver=approver, **who))
        if waiting is not None:
            await waiting
    except Denied as denied:
        return str(denied)
    return "allowed"


class Async:
    """An approver of one async function."""

    name = "test"

    def __init__(self, function: Callable[[ApprovalRequest], Awaitable[Any]]) -> None:
        self._function = function

    async def decide(self, request: ApprovalRequest) -> Any:
        return await self._function(request)


def shell(ran: list[str], gate: ApprovalGate | None, approver: Approver | None = None) -> Runtime:
    """A runtime with the tool `terminal`, which notes the command."""
    registry = ToolRegistry()

    def actions(args: dict[str, Any], context: ToolContext) -> Sequence[Action]:
        return [command(args["command"])]

    registry.register(
        name="terminal",
        toolset="test",
        schema={
            "description": "Run a command.",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        },
        handler=lambda args, **_: ran.append(args["command"]) or "done",
        actions=actions,
    )
    return Runtime(registry, gate=gate, approver=approver)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  what is waited for is in a file
            await asyncio.sleep(0.002)

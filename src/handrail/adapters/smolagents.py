"""Tools of a session for smolagents: `ToolCallingAgent(tools(session), model)`, or a `CodeAgent`.

smolagents has no approvals of its own: give the session an `approver`. Without one, what has to be asked about is denied unless
the Handrail itself asks somebody.
"""

from typing import Any

from smolagents import Tool
from smolagents.tools import AUTHORIZED_TYPES

from ..base.workers import MAX_SECONDS, run_async
from ..sessions.session import Session, SyncSession
from ..types import JsonDict
from .tools import SessionTool, message_of, session_tools


class ToolError(Exception):
    """A call that failed. smolagents makes an `AgentToolExecutionError` of it, which the model is told."""


def tools(session: Session | SyncSession) -> list[Tool]:
    return [_Tool(each) for each in session_tools(session)]


class _Tool(Tool):  # type: ignore[misc]  # not installed where types are checked
    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, tool: SessionTool) -> None:
        needed = tool.parameters.get("required", ())
        self.name, self.description, self._tool = tool.name, tool.description, tool
        given = tool.parameters.get("properties", {})
        self.inputs = {name: _input(name, schema, name in needed) for name, schema in given.items()}
        super().__init__()

    def forward(self, *values: Any, **args: Any) -> str:
        """Code may give arguments by position. None is how smolagents writes an argument that is not given."""
        named = {**dict(zip(self.inputs, values, strict=False)), **args}
        given = {name: value for name, value in named.items() if value is not None}
        result = run_async(self._tool.call(given, ""), timeout=MAX_SECONDS)
        if result.is_error:
            raise ToolError(message_of(result))
        return result.text


def _input(name: str, schema: JsonDict, is_needed: bool) -> JsonDict:
    """smolagents knows one type for each argument, or any."""
    kind = schema.get("type")
    known = kind if isinstance(kind, str) and kind in AUTHORIZED_TYPES else "any"
    found = {**schema, "type": known, "description": schema.get("description") or name}
    found.pop("anyOf", None)
    return found if is_needed else {**found, "nullable": True}

"""Tools of a session for Inspect: `react(tools=tools(session))`, or `use_tools(tools(session))`.

A session is opened for each sample, in a solver or agent of yours. Inspect's own approval policies see every call before it
reaches Handrail; what Handrail itself asks about goes to the session's `approver`.
"""

from typing import Any

from inspect_ai.tool import Tool, ToolDef, ToolError, ToolParams

from ..sessions.session import Session, SyncSession
from .tools import SessionTool, message_of, session_tools


def tools(session: Session | SyncSession) -> list[Tool]:
    return [_definition(each).as_tool() for each in session_tools(session)]


def _definition(tool: SessionTool) -> ToolDef:
    async def call(**args: Any) -> str:
        # Inspect gives None for what the model left out.
        result = await tool.call({name: value for name, value in args.items() if value is not None}, "")
        if result.is_error:
            raise ToolError(message_of(result))
        return result.text

    properties = {
        name: {**schema, "description": schema.get("description") or name}
        for name, schema in tool.parameters.get("properties", {}).items()
    }
    parameters = ToolParams.model_validate({"properties": properties, "required": tool.parameters.get("required", [])})
    return ToolDef(call, tool.name, tool.description, parameters)

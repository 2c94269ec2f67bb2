"""Tools of a session for Pydantic AI: `Agent(..., toolsets=[toolset(session)], output_type=[str, DeferredToolRequests])`.

A call that has to be asked about is deferred with `ApprovalRequired`; `DeferredToolRequests.metadata` has the questions. Give
that metadata back in `DeferredToolResults` where the run is resumed by another process.
"""

from typing import Any

from pydantic_ai import ApprovalRequired, FunctionToolset, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed

from ..sessions.session import Session, SyncSession
from .tools import SessionTool, message_of, session_tools, shown


def toolset(session: Session | SyncSession) -> FunctionToolset[Any]:
    return FunctionToolset([_tool(each) for each in session_tools(session)])


def _tool(tool: SessionTool) -> Tool[Any]:
    async def call(context: RunContext[Any], /, **args: Any) -> str:
        call_id = context.tool_call_id or ""
        if context.tool_call_approved:
            asked = (context.tool_call_metadata or {}).get("questions", ())
            result = await tool.call_approved(args, call_id, "pydantic-ai", [each["fingerprint"] for each in asked])
        elif questions := await tool.questions(args, call_id):
            raise ApprovalRequired(metadata={"questions": [shown(each) for each in questions]})
        else:
            result = await tool.call(args, call_id)
        if result.is_error:
            raise ToolFailed(message_of(result))
        return result.text

    return Tool.from_schema(call, tool.name, tool.description, tool.parameters, takes_ctx=True)

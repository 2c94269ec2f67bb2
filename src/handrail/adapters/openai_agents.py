"""Tools of a session for the OpenAI Agents SDK: `Agent(..., tools=tools(session))`.

A call that has to be asked about is an interruption of the run: `state.approve(item)` or `state.reject(item)`, and run again with
the state. `await session.preview(item.name, item.arguments)` says why it is asked about.
"""

from typing import Any

from agents import FunctionTool, RunContextWrapper, SpanError, ToolApprovalItem, get_current_span
from agents.tool_context import ToolContext

from ..core.outcome import value_of
from ..sessions.session import Session, SyncSession
from .tools import SessionTool, message_of, session_tools


def tools(session: Session | SyncSession) -> list[FunctionTool]:
    return [_tool(each) for each in session_tools(session)]


def _tool(tool: SessionTool) -> FunctionTool:
    async def needs_approval(_: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
        return bool(await tool.questions(args, call_id))

    async def invoke(context: ToolContext[Any], text: str) -> str:
        # What is not JSON stays text, and the call says what is wrong with it.
        args, call_id = value_of(text or "{}"), context.tool_call_id
        if _is_approved(context):
            result = await tool.call_approved(args, call_id, "openai-agents")
        else:
            result = await tool.call(args, call_id)
        if not result.is_error:
            return result.text
        message = message_of(result)
        if span := get_current_span():
            span.set_error(SpanError(message=message, data={"tool": tool.name, "error_type": result.error_type}))
        return message

    # Optional parameters, which strict schemas do not know.
    return FunctionTool(
        tool.name, tool.description, tool.parameters, invoke, strict_json_schema=False, needs_approval=needs_approval
    )


def _is_approved(context: ToolContext[Any]) -> bool:
    """Whether a person has said yes, as against: nobody had to be asked when the call was looked at."""
    name, call_id = context.tool_name, context.tool_call_id
    if context.agent is None or context.tool_call is None:
        return context.is_tool_approved(name, call_id) is True
    item = ToolApprovalItem(agent=context.agent, raw_item=context.tool_call)
    return context.get_approval_status(name, call_id, current_invocation=item) is True

"""Tools of a session for LangChain and LangGraph: `create_agent(model, tools(session), checkpointer=...)`.

In a graph, a call that has to be asked about is an `interrupt` whose value is the question. Resume with `Command(resume=reply)`:
True or False, a decision ("once", "session", ...), or a dict with `decision` and, as you like, `by`, `why` and the question's
`fingerprint`, which binds the answer where another process resumes the graph.
"""

from typing import Any

from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from ..base.workers import MAX_SECONDS, run_async
from ..protocols import Answer, ApprovalRequest, Decision
from ..sessions.session import Result, Session, SyncSession
from .tools import SessionTool, message_of, session_tools, shown


def tools(session: Session | SyncSession) -> list[BaseTool]:
    return [
        _Tool(name=each.name, description=each.description, args_schema=each.parameters, tool=each)
        for each in session_tools(session)
    ]


class _Tool(BaseTool):  # type: ignore[misc]  # not installed where types are checked
    """Errors are a `ToolMessage` whose status is "error"."""

    tool: Any
    handle_tool_error: bool = True

    def _parse_input(self, tool_input: str | dict[str, Any], tool_call_id: str | None) -> dict[str, Any]:
        """The call checks the arguments itself. It is the only place where the id of the model's call is given."""
        return {"given": tool_input, "call_id": tool_call_id or ""}

    def _run(self, given: Any, call_id: str) -> str:
        answers = _answers(run_async(self.tool.questions(given, call_id)))
        return _text(run_async(self.tool.call(given, call_id, answers), timeout=MAX_SECONDS))

    async def _arun(self, given: Any, call_id: str) -> str:
        tool: SessionTool = self.tool
        answers = _answers(await tool.questions(given, call_id))
        return _text(await tool.call(given, call_id, answers))


def _answers(questions: list[ApprovalRequest]) -> list[Answer]:
    """Each question stops the graph until it is answered; the call is then made from its beginning."""
    found = []
    for question in questions:
        try:
            reply = interrupt(shown(question))
        except GraphBubbleUp:
            raise
        except (KeyError, RuntimeError):  # in no graph: the call asks whoever the Handrail asks
            return []
        found.append(_answer(question, reply))
    return found


def _answer(question: ApprovalRequest, reply: Any) -> Answer:
    """What is no clear yes is a no."""
    given = reply if isinstance(reply, dict) else {"decision": reply}
    chosen = given.get("decision")
    try:
        decision = Decision.ONCE if chosen is True else Decision(chosen)
    except ValueError:
        decision = Decision.DENY
    fingerprint = given.get("fingerprint") or question.fingerprint
    return Answer(decision, str(given.get("by", "langgraph")), str(given.get("why", "")), fingerprint=fingerprint)


def _text(result: Result) -> str:
    if result.is_error:
        raise ToolException(message_of(result))
    return result.text

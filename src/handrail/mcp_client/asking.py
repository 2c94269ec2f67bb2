"""What a server may ask of us: something of the person, something of the model, and where to work. Each as configured."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..async_bridge import run_async
from ..errors import HandrailError
from ..protocols import Answer, ApprovalRequest, Decision
from ..safe_text import safe_error
from ..workers import pool

if TYPE_CHECKING:
    from ..config.services import McpServerConfig
    from ..types import JsonDict, ToolContext

# Set in a task that makes a call: in the newer revisions it is the call itself that hears what the server asks.
calling: contextvars.ContextVar[ToolContext | None] = contextvars.ContextVar("mcp_calling", default=None)


# A conversation as a model gets it, to what the model says and its name.
Sampler = Callable[[list["JsonDict"]], Awaitable[tuple[str, str]]]


class Asking:
    """Knows whose calls are under way, so that a server's question reaches whoever made the call."""

    def __init__(self) -> None:
        self.sampler: Sampler | None = None
        # By identity: to look for one among hundreds by comparing them would take longer than the call. Any thread calls.
        self._under_way: dict[str, dict[int, ToolContext]] = {}

    def begin(self, server: str, context: ToolContext) -> None:
        self._under_way.setdefault(server, {})[id(context)] = context

    def end(self, server: str, context: ToolContext) -> None:
        del self._under_way[server][id(context)]

    def _latest(self, server: str) -> ToolContext | None:
        under_way = list(self._under_way.get(server, {}).values())  # in one go: other threads add and remove
        return under_way[-1] if under_way else None

    def callbacks(self, server: str, settings: McpServerConfig) -> JsonDict:
        """What the SDK's client is given; what is not given, the server is told that we cannot do."""
        given: JsonDict = {}
        if settings.elicitation:
            given["elicitation_callback"] = lambda _, params: self._elicit(server, params)
        if settings.sampling:
            given["sampling_callback"] = lambda _, params: self._sample(server, params)
        if settings.roots:
            given["list_roots_callback"] = lambda _: _roots(settings.roots)
        return given

    async def _elicit(self, server: str, params: Any) -> Any:
        from mcp_types import ElicitResult

        context = calling.get() or self._latest(server)
        schema = getattr(params, "requested_schema", None)
        if context is None or schema is None:  # nobody called, or it wants a page to be opened
            return ElicitResult(action="decline")
        if not await _may(server, params.message, context):
            return ElicitResult(action="decline")
        content = await asyncio.wrap_future(pool.submit(_filled, schema, params.message, context))
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    async def _sample(self, server: str, params: Any) -> Any:
        """Only while a call is under way: a server has no business with the model otherwise."""
        from mcp_types import INVALID_REQUEST, CreateMessageResult, ErrorData, TextContent

        if self.sampler is None or not self._under_way.get(server):
            return ErrorData(code=INVALID_REQUEST, message="there is no model to ask now")
        try:
            text, model = await self.sampler(_conversation(params))
        except (HandrailError, ValueError) as error:
            return ErrorData(code=INVALID_REQUEST, message=safe_error(str(error)))
        return CreateMessageResult(role="assistant", content=TextContent(text=text), model=model, stop_reason="endTurn")


def _conversation(params: Any) -> list[JsonDict]:
    """In the shape that models take. Raises ValueError for what is no text."""
    system = [{"role": "system", "content": params.system_prompt}] if params.system_prompt else []
    said = []
    for message in params.messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        if any(block.type != "text" for block in blocks):
            raise ValueError("the model is asked in text only")
        said.append({"role": message.role, "content": "\n".join(block.text for block in blocks)})
    return [*system, *said]


async def _may(server: str, message: str, context: ToolContext) -> bool:
    """Whether the approver says yes. No approver is a no."""
    if context.approver is None:
        return False
    request = ApprovalRequest(
        tool=context.tool,
        arguments={},
        reason=f"MCP server {server} asks: {safe_error(message)}",
        text=safe_error(message),
        task_id=context.task_id,
        session_id=context.session_id,
    )
    reply = await asyncio.wrap_future(pool.submit(context.approver.decide, request))
    if reply is not None and not isinstance(reply, Decision | Answer):
        reply = await reply
    decision = reply.decision if isinstance(reply, Answer) else reply
    return decision is not None and decision.allows


def _filled(schema: JsonDict, message: str, context: ToolContext) -> JsonDict | None:
    """The form's fields: a lone yes or no is what the approver said; anything else the person is asked. None: not answered.

    Where there is nobody to ask, or nothing is said, the form's own default holds.
    """
    fields: JsonDict = schema.get("properties", {})
    if len(fields) == 1 and all(field.get("type") == "boolean" for field in fields.values()):
        return dict.fromkeys(fields, True)
    content: JsonDict = {}
    for name, field in fields.items():
        said = "" if context.person is None else context.person.ask(*_question(name, field, message))
        if said is not None and not isinstance(said, str):
            said = run_async(said)
        if said is None:
            return None
        if not said:
            if "default" in field:
                content[name] = field["default"]
            elif name in schema.get("required", ()):
                return None
            continue
        try:
            content[name] = _typed(said, str(field.get("type", "string")))
        except ValueError:
            return None
    return content


def _question(name: str, field: JsonDict, message: str) -> tuple[str, list[str]]:
    label = safe_error(str(field.get("title") or field.get("description") or name))
    choices = ["yes", "no"] if field.get("type") == "boolean" else [str(each) for each in field.get("enum", ())]
    return f"{safe_error(message)} — {label}", choices


def _typed(said: str, kind: str) -> Any:
    if kind == "boolean":
        return said.strip().lower() in ("yes", "y", "true", "1")
    return int(said) if kind == "integer" else float(said) if kind == "number" else said


async def _roots(folders: tuple[str, ...]) -> Any:
    from mcp_types import ListRootsResult, Root

    paths = [Path(os.path.abspath(os.path.expanduser(folder))) for folder in folders]  # noqa: ASYNC240  reads no disk
    return ListRootsResult(roots=[Root.model_validate({"uri": path.as_uri(), "name": path.name}) for path in paths])

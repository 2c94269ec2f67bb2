"""Calls that a server goes on with as a task: poll it, answer its questions, cancel it.

Tasks are an extension of the protocol. The revision 2025-11-25 had them in another form, in which the client asks for one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal

import mcp_types
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from ..types import JsonDict

EXTENSION = "io.modelcontextprotocol/tasks"
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.05, 5.0
_CANCEL_SECONDS = 5.0
_UNKNOWN_TASK = mcp_types.INVALID_PARAMS
_FORGOTTEN = (
    "the connection was lost during the call, and the server does not know its task any more; "
    "it is unknown whether the call took effect"
)
_KINDS: dict[str, tuple[str, Any]] = {
    "elicitation/create": ("elicitation_callback", mcp_types.ElicitRequest),
    "sampling/createMessage": ("sampling_callback", mcp_types.CreateMessageRequest),
}


class Created(mcp_types.Result):
    """What a call is answered with that goes on."""

    result_type: Literal["task"]
    task_id: str
    poll_interval_ms: int | None = None


class TaskRequest(mcp_types.Request[JsonDict, str]):
    name_param: ClassVar[str | None] = "taskId"


async def send(session: Any, method: str, task: str, **more: Any) -> JsonDict:
    request = TaskRequest(method=method, params={"taskId": task, **more})
    answer: JsonDict = await session.send_request(request, TypeAdapter(JsonDict))
    return answer


async def _cancel(session: Any, task: str) -> None:
    with contextlib.suppress(Exception):  # the server is gone, or the task has ended
        await asyncio.wait_for(send(session, "tasks/cancel", task), _CANCEL_SECONDS)


def _pause(milliseconds: int | None) -> float:
    return min(max((milliseconds or 500) / 1000, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS)


async def call_as_task(session: Any, tool: str, arguments: JsonDict, on_progress: Any) -> mcp_types.CallToolResult:
    """Call a tool of a server of 2025-11-25 that runs it only as a task."""
    params: JsonDict = {"name": tool, "arguments": arguments, "task": {}}
    options: JsonDict = {} if on_progress is None else {"on_progress": on_progress}
    # The session itself takes nothing but a tool's result for an answer to this.
    answer = await session._dispatcher.send_raw_request("tools/call", params, options)
    created = mcp_types.CreateTaskResult.model_validate(answer).task
    try:
        while (await send(session, "tasks/get", created.task_id))["status"] == "working":  # noqa: ASYNC110  only the server knows
            await asyncio.sleep(_pause(created.poll_interval))
        # What the task asks of us, it asks while we wait for its result.
        return mcp_types.CallToolResult.model_validate(await send(session, "tasks/result", created.task_id))
    except asyncio.CancelledError:
        await _cancel(session, created.task_id)
        raise


class TaskExtension(ClientExtension):
    """For the SDK's client of one server. `callbacks` answer what a task asks, as if it were asked during the call.
    `reconnected` gives the session to go on with when the one is lost in which a task was started."""

    identifier = EXTENSION

    def __init__(self, callbacks: JsonDict, reconnected: Callable[[Exception], Awaitable[Any]] | None = None) -> None:
        self._callbacks, self._reconnected = callbacks, reconnected

    def claims(self) -> Any:
        return [ResultClaim(result_type="task", model=Created, resolve=self._result)]

    async def _result(self, created: Created, context: Any) -> Any:
        session, task, pause = context.session, created.task_id, _pause(created.poll_interval_ms)
        while True:
            try:
                now = await self._ended(session, task, pause)
                break
            except asyncio.CancelledError:
                await _cancel(session, task)
                raise
            except Exception as error:  # which one a lost connection is, the connection knows
                if session is not context.session and isinstance(error, MCPError) and error.code == _UNKNOWN_TASK:
                    raise MCPError(error.code, _FORGOTTEN) from None
                if self._reconnected is None:
                    raise
                session = await self._reconnected(error)
        if now["status"] == "completed":
            return mcp_types.CallToolResult.model_validate(now["result"])
        failure = now.get("error") or {"message": f"the task is {now['status']}"}
        raise MCPError(failure.get("code", mcp_types.INTERNAL_ERROR), str(failure.get("message")))

    async def _ended(self, session: Any, task: str, pause: float) -> JsonDict:
        """Poll until it has ended, and answer what it asks meanwhile."""
        while (now := await send(session, "tasks/get", task))["status"] in ("working", "input_required"):
            if asked := now.get("inputRequests"):
                answers = {key: await self._answer(each) for key, each in asked.items()}
                await send(session, "tasks/update", task, inputResponses=answers)
            await asyncio.sleep(pause)
        return now

    async def _answer(self, raw: JsonDict) -> JsonDict:
        name, kind = _KINDS.get(str(raw.get("method")), ("list_roots_callback", None))
        if name not in self._callbacks:
            return {"action": "decline"}
        arguments = (None, kind.model_validate(raw).params) if kind else (None,)
        answer = await self._callbacks[name](*arguments)
        dumped: JsonDict = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dumped

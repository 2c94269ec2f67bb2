"""Calls that a server goes on with as a task of the protocol's extension: poll it, answer its questions, cancel it."""

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


class TaskExtension(ClientExtension):
    """For the SDK's client of one server. `callbacks` answer what a task asks, as if it were asked during the call.
    `reconnected` gives the session to go on with when the one is lost in which a task was started."""

    identifier = EXTENSION

    def __init__(self, callbacks: JsonDict, reconnected: Callable[[Exception], Awaitable[Any]] | None = None) -> None:
        self._callbacks, self._reconnected = callbacks, reconnected

    def claims(self) -> Any:
        return [ResultClaim(result_type="task", model=Created, resolve=self._result)]

    async def _result(self, created: Created, context: Any) -> Any:
        session, task = context.session, created.task_id
        pause = min(max((created.poll_interval_ms or 500) / 1000, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS)
        while True:
            try:
                now = await self._ended(session, task, pause)
                break
            except asyncio.CancelledError:
                with contextlib.suppress(Exception):  # the server is gone, or the task has ended
                    await asyncio.wait_for(send(session, "tasks/cancel", task), _CANCEL_SECONDS)
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

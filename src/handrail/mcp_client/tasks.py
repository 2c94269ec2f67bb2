"""Calls that a server goes on with as a task: poll it, answer its questions, cancel it.

Tasks are an extension of the protocol. The revision 2025-11-25 had them in another form, in which the client asks for one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar, Literal

import mcp_types
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from ..types import JsonDict

Reconnected = Callable[[Any, Exception], Awaitable[Any]]
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


class Followed:
    """One task, whichever session it is asked about in. `reconnected` gives the one after a session that is lost."""

    def __init__(self, session: Any, task: str, reconnected: Reconnected | None) -> None:
        self._session = self._first = session
        self._task, self._reconnected = task, reconnected

    async def send(self, method: str, **more: Any) -> JsonDict:
        request = TaskRequest(method=method, params={"taskId": self._task, **more})
        while True:
            try:
                answer: JsonDict = await self._session.send_request(request, TypeAdapter(JsonDict))
                return answer
            except Exception as error:  # which one a lost connection is, the connection knows
                is_another = self._session is not self._first
                if is_another and isinstance(error, MCPError) and error.code == _UNKNOWN_TASK:
                    raise MCPError(error.code, _FORGOTTEN) from None
                if self._reconnected is None:
                    raise
                self._session = await self._reconnected(self._session, error)

    @contextlib.asynccontextmanager
    async def cancelled_with_caller(self) -> AsyncIterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            # It goes on beyond these seconds if the server has to come back first.
            await asyncio.wait([asyncio.ensure_future(self._cancel())], timeout=_CANCEL_SECONDS)
            raise

    async def _cancel(self) -> None:
        with contextlib.suppress(Exception):  # the server is gone, or the task has ended
            await self.send("tasks/cancel")


def _pause(milliseconds: int | None) -> float:
    return min(max((milliseconds or 500) / 1000, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS)


async def call_as_task(client: Any, tool: str, arguments: JsonDict, on_progress: Any) -> mcp_types.CallToolResult:
    """Call a tool of a server of 2025-11-25 that runs it only as a task."""
    params: JsonDict = {"name": tool, "arguments": arguments, "task": {}}
    options: JsonDict = {} if on_progress is None else {"on_progress": on_progress}
    # The session itself takes nothing but a tool's result for an answer to this.
    answer = await client.session._dispatcher.send_raw_request("tools/call", params, options)
    created = mcp_types.CreateTaskResult.model_validate(answer).task
    reconnected = next((each.reconnected for each in client.extensions if isinstance(each, TaskExtension)), None)
    task = Followed(client.session, created.task_id, reconnected)
    async with task.cancelled_with_caller():
        while (await task.send("tasks/get"))["status"] == "working":  # noqa: ASYNC110  only the server knows
            await asyncio.sleep(_pause(created.poll_interval))
        # What the task asks of us, it asks while we wait for its result.
        return mcp_types.CallToolResult.model_validate(await task.send("tasks/result"))


class TaskExtension(ClientExtension):
    """For the SDK's client of one server. `callbacks` answer what a task asks, as if it were asked during the call;
    `reconnected` is as for `Followed`."""

    identifier = EXTENSION

    def __init__(self, callbacks: JsonDict, reconnected: Reconnected | None = None) -> None:
        self._callbacks, self.reconnected = callbacks, reconnected

    def claims(self) -> Any:
        return [ResultClaim(result_type="task", model=Created, resolve=self._result)]

    async def _result(self, created: Created, context: Any) -> Any:
        task, pause = Followed(context.session, created.task_id, self.reconnected), _pause(created.poll_interval_ms)
        async with task.cancelled_with_caller():
            while (now := await task.send("tasks/get"))["status"] in ("working", "input_required"):
                if asked := now.get("inputRequests"):
                    answers = {key: await self._answer(each) for key, each in asked.items()}
                    await task.send("tasks/update", inputResponses=answers)
                await asyncio.sleep(pause)
        if now["status"] == "completed":
            return mcp_types.CallToolResult.model_validate(now["result"])
        failure = now.get("error") or {"message": f"the task is {now['status']}"}
        raise MCPError(failure.get("code", mcp_types.INTERNAL_ERROR), str(failure.get("message")))

    async def _answer(self, raw: JsonDict) -> JsonDict:
        name, kind = _KINDS.get(str(raw.get("method")), ("list_roots_callback", None))
        if name not in self._callbacks:
            return {"action": "decline"}
        arguments = (None, kind.model_validate(raw).params) if kind else (None,)
        answer = await self._callbacks[name](*arguments)
        dumped: JsonDict = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dumped

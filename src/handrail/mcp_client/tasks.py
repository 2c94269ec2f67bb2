"""Calls that a server goes on with as a task of the protocol's extension: poll it, answer its questions, cancel it."""

from __future__ import annotations

import asyncio
import contextlib
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from ..base.lazy_module import lazy_import
from ..errors import ToolFailed
from ..settings.services import McpServerConfig
from ..types import JsonDict
from .server_requests import ServerRequests

if TYPE_CHECKING:
    import mcp_types
    import pydantic
    from mcp.client import extension
    from mcp.shared import exceptions
else:
    mcp_types, pydantic, extension, exceptions = map(
        lazy_import, ("mcp_types", "pydantic", "mcp.client.extension", "mcp.shared.exceptions")
    )

EXTENSION = "io.modelcontextprotocol/tasks"
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.05, 5.0
_CANCEL_SECONDS = 5.0


class _Models(NamedTuple):
    created: Any
    details: Any
    request: Any


@cache
def _models() -> _Models:
    """Defined when they are first needed: the SDK takes long to import."""

    class Created(mcp_types.Result):
        result_type: Literal["task"]
        task_id: str
        poll_interval_ms: int | None = None

    class Details(mcp_types.Result):
        status: str
        result: JsonDict | None = None
        error: JsonDict | None = None
        questions: JsonDict | None = pydantic.Field(None, alias="inputRequests")

    class TaskRequest(mcp_types.Request[JsonDict, str]):
        name_param: ClassVar[str | None] = "taskId"

    return _Models(Created, Details, TaskRequest)


def task_extension(requests: ServerRequests, server: str, settings: McpServerConfig) -> Any:
    """For the SDK's client of one server."""
    models = _models()

    async def resolve(created: Any, context: Any) -> Any:
        task = _Task(context.session, created, requests.callbacks(server, settings))
        try:
            return await task.result()
        except asyncio.CancelledError:
            await task.cancel()
            raise

    class TaskExtension(extension.ClientExtension):
        identifier = EXTENSION

        def claims(self) -> Any:
            return [extension.ResultClaim(result_type="task", model=models.created, resolve=resolve)]

    return TaskExtension()


class _Task:
    def __init__(self, session: Any, created: Any, callbacks: JsonDict) -> None:
        self._session, self._id, self._callbacks = session, created.task_id, callbacks
        wanted = (created.poll_interval_ms or 500) / 1000
        self._pause = min(max(wanted, _MIN_POLL_SECONDS), _MAX_POLL_SECONDS)

    async def result(self) -> Any:
        while True:
            now = await self._send("tasks/get", _models().details)
            if now.status == "completed":
                return mcp_types.CallToolResult.model_validate(now.result or {"content": []})
            if now.status == "failed":
                error = now.error or {}
                raise exceptions.MCPError(
                    error.get("code", mcp_types.INTERNAL_ERROR), error.get("message", "it failed")
                )
            if now.status == "cancelled":
                raise ToolFailed("the server cancelled the task")
            if now.status == "input_required":
                answers = {key: await self._answer(each) for key, each in (now.questions or {}).items()}
                await self._send("tasks/update", mcp_types.EmptyResult, inputResponses=answers)
            await asyncio.sleep(self._pause)

    async def cancel(self) -> None:
        with contextlib.suppress(Exception):  # the server is gone, or the task has ended
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self._send("tasks/cancel", mcp_types.EmptyResult)

    async def _answer(self, raw: JsonDict) -> JsonDict:
        """As if the server had asked during the call."""
        kinds: dict[str, tuple[str, Any]] = {
            "elicitation/create": ("elicitation_callback", mcp_types.ElicitRequest),
            "sampling/createMessage": ("sampling_callback", mcp_types.CreateMessageRequest),
            "roots/list": ("list_roots_callback", mcp_types.ListRootsRequest),
        }
        name, kind = kinds.get(str(raw.get("method")), ("", None))
        if name not in self._callbacks:
            return {"action": "decline"}
        params = kind.model_validate(raw).params
        arguments = (None,) if name == "list_roots_callback" else (None, params)
        answer: JsonDict = (await self._callbacks[name](*arguments)).model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        return answer

    async def _send(self, method: str, result: Any, **more: Any) -> Any:
        request = _models().request(method=method, params={"taskId": self._id, **more})
        return await self._session.send_request(request, result)

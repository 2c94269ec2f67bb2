"""Long calls as tasks of the protocol's extension: the client polls, responds, cancels, and may reconnect meanwhile."""

from __future__ import annotations

import contextlib
import datetime
import secrets
import time
from typing import Any

import mcp_types
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from ...types import JsonDict
from .client_requests import MISSING_CAPABILITY, ClientRequest

EXTENSION = "io.modelcontextprotocol/tasks"
# A call that has taken this long becomes a task, if its client knows them.
TASK_AFTER_SECONDS = 0.5
_TTL_SECONDS = 3600
_POLL_MILLISECONDS = 500
_HEADER_MISMATCH = -32020


class _TaskParams(mcp_types.RequestParams):
    task_id: str
    input_responses: JsonDict | None = None


class Task:
    """One call that goes on after its request was answered."""

    def __init__(self, request: ClientRequest) -> None:
        self.id = secrets.token_urlsafe(24)
        self.request = request
        self.cancelled = False
        self.created = self.updated = time.time()
        request.work.add_done_callback(lambda _: self.touch())

    def touch(self) -> None:
        self.updated = time.time()

    def status(self) -> str:
        work = self.request.work
        if self.cancelled or (work.done() and work.cancelled()):
            return "cancelled"
        if not work.done():
            return "input_required" if self.request.pending else "working"
        return "failed" if work.exception() is not None else "completed"

    def describe(self) -> JsonDict:
        return {
            "taskId": self.id,
            "status": self.status(),
            "createdAt": _iso(self.created),
            "lastUpdatedAt": _iso(self.updated),
            "ttlMs": _TTL_SECONDS * 1000,
            "pollIntervalMs": _POLL_MILLISECONDS,
        }

    def details(self) -> JsonDict:
        """With what belongs to its status: the questions, the result, or the error."""
        about, work = self.describe(), self.request.work
        if about["status"] == "input_required":
            asked = {key: _dumped(each) for key, (each, _) in self.request.pending.items()}
            return {**about, "inputRequests": asked}
        if about["status"] == "failed":
            error: Any = work.exception()
            code = getattr(error, "code", mcp_types.INTERNAL_ERROR)
            return {**about, "error": {"code": code, "message": str(error)}}
        return {**about, "result": _dumped(work.result())} if about["status"] == "completed" else about


class Tasks:
    """The tasks of one server, by an id that only the client knows which started it."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def add_to(self, server: Server[Any]) -> None:
        server.extensions[EXTENSION] = {}
        for name in ("get", "update", "cancel"):
            server.add_request_handler(f"tasks/{name}", _TaskParams, getattr(self, f"_{name}"))

    def start(self, request: ClientRequest) -> JsonDict:
        """Let a request go on as a task. Returns the answer to the request."""
        now = time.time()
        for old in [each for each in self._tasks.values() if each.request.work.done()]:
            if now - old.updated > _TTL_SECONDS:
                del self._tasks[old.id]
        task = Task(request)
        self._tasks[task.id] = task
        return {"resultType": "task", **task.describe()}

    async def _get(self, context: Any, params: Any) -> JsonDict:
        return self._found(context, params).details()

    async def _update(self, context: Any, params: Any) -> JsonDict:
        task = self._found(context, params)
        task.request.answer(_responses(params.input_responses))
        task.touch()
        return {}

    async def _cancel(self, context: Any, params: Any) -> JsonDict:
        task = self._found(context, params)
        if not task.request.work.done():
            task.cancelled = True
            task.request.give_up("the client cancelled the task")
            task.touch()
        return {}

    def _found(self, context: Any, params: Any) -> Task:
        """Raises MCPError for a client that does not know tasks, or not this one."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found")
        if not knows_tasks(context):
            needed = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise MCPError(MISSING_CAPABILITY, f"the client does not declare {EXTENSION}", data=needed)
        if context.request is not None and context.request.headers.get("mcp-name") != params.task_id:
            raise MCPError(_HEADER_MISMATCH, "the header Mcp-Name is not the taskId")
        task = self._tasks.get(params.task_id)
        if task is None:
            raise MCPError(mcp_types.INVALID_PARAMS, f"there is no task {params.task_id}")
        return task


def knows_tasks(context: Any) -> bool:
    capabilities = context.session.client_capabilities
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and EXTENSION in (getattr(capabilities, "extensions", None) or {})


def _responses(raw: JsonDict | None) -> JsonDict:
    """The responses that can be read; the others stay unanswered."""
    read, known = {}, TypeAdapter(mcp_types.InputResponse)
    for key, value in (raw or {}).items():
        with contextlib.suppress(ValueError):
            read[key] = known.validate_python(value)
    return read


def _dumped(value: Any) -> JsonDict:
    dumped: JsonDict = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


def _iso(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

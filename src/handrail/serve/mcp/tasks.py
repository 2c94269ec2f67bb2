"""Long calls as tasks of the protocol's extension: the client polls, responds, cancels, and may reconnect meanwhile.

What became of a task is kept in a file too: a server that was started again, or one beside it, knows it.
"""

import contextlib
import datetime
import hashlib
import json
import logging
import os
import secrets
import time
from pathlib import Path
from typing import Any

import mcp_types
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from ...base.atomic import replace_file
from ...base.own_process import has_exited, runtime_id
from ...config.paths import make_private
from ...types import JsonDict
from .client_requests import MISSING_CAPABILITY, ClientRequest, dumped

log = logging.getLogger(__name__)
EXTENSION = "io.modelcontextprotocol/tasks"
# A call that has taken this long becomes a task, if its client knows them.
TASK_AFTER_SECONDS = 0.5
_TTL_SECONDS = 3600
_POLL_MILLISECONDS = 500
_HEADER_MISMATCH = -32020
_OPEN = ("working", "input_required")
_ENDED = "the server ended during the call; it is unknown whether the call took effect"


class _TaskParams(mcp_types.RequestParams):
    task_id: str
    input_responses: JsonDict | None = None


class Task:
    """One call that goes on after its request was answered."""

    def __init__(self, request: ClientRequest) -> None:
        self.id = secrets.token_urlsafe(24)
        self.request = request
        self.created = self.updated = time.time()
        request.work.add_done_callback(lambda _: self.touch())

    def touch(self) -> None:
        self.updated = time.time()

    def status(self) -> str:
        work = self.request.work
        if self.request.cancel.cancelled:
            return "cancelled"
        if not work.done():
            return "input_required" if self.request.pending else "working"
        return "failed" if work.cancelled() or work.exception() is not None else "completed"

    def describe(self, *, whole: bool = True) -> JsonDict:
        """`whole` with what belongs to its status: the questions, the result, or the error."""
        status, work = self.status(), self.request.work
        more: JsonDict = {}
        if status == "input_required":
            more["inputRequests"] = {key: dumped(each) for key, (each, _) in self.request.pending.items()}
        elif status == "failed":
            error: Any = RuntimeError(_ENDED) if work.cancelled() else work.exception()
            more["error"] = {"code": getattr(error, "code", mcp_types.INTERNAL_ERROR), "message": str(error)}
        elif status == "completed":
            more["result"] = dumped(work.result())
        return {
            "taskId": self.id,
            "status": status,
            "createdAt": _iso(self.created),
            "lastUpdatedAt": _iso(self.updated),
            "ttlMs": _TTL_SECONDS * 1000,
            "pollIntervalMs": _POLL_MILLISECONDS,
            **(more if whole else {}),
        }


class Tasks:
    """The tasks of one server, by an id that only the client knows which started it. `folder` keeps them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tasks: dict[str, Task] = {}

    def add_to(self, server: Server[Any]) -> None:
        server.extensions[EXTENSION] = {}
        for name in ("get", "update", "cancel"):
            server.add_request_handler(f"tasks/{name}", _TaskParams, getattr(self, f"_{name}"))

    def start(self, request: ClientRequest) -> JsonDict:
        """Let a request go on as a task. Returns the answer to the request."""
        since = time.time() - _TTL_SECONDS
        for key in [key for key, each in self._tasks.items() if each.request.work.done() and each.updated < since]:
            del self._tasks[key]
        with contextlib.suppress(OSError):
            for entry in list(os.scandir(self._folder)):
                if entry.stat().st_mtime < since:
                    os.unlink(entry.path)
        task = Task(request)
        self._tasks[task.id] = task
        self._keep(task)
        request.work.add_done_callback(lambda _: self._keep(task))
        return {"resultType": "task", **task.describe(whole=False)}

    async def _get(self, context: Any, params: Any) -> JsonDict:
        task = self._found(context, params)
        return task.describe() if isinstance(task, Task) else task

    async def _update(self, context: Any, params: Any) -> JsonDict:
        task, known = self._found(context, params), TypeAdapter[Any](mcp_types.InputResponse)
        if not isinstance(task, Task):
            raise MCPError(mcp_types.INVALID_PARAMS, "the task has ended, or runs in another server")
        for key, value in (params.input_responses or {}).items():
            with contextlib.suppress(ValueError):  # what cannot be read stays unanswered
                task.request.answer({key: known.validate_python(value)})
        task.touch()
        return {}

    async def _cancel(self, context: Any, params: Any) -> JsonDict:
        task = self._found(context, params)
        if not isinstance(task, Task):
            if task["status"] in _OPEN:
                raise MCPError(mcp_types.INVALID_PARAMS, "the task runs in another server; cancel it there")
        elif not task.request.work.done():
            task.request.give_up("the client cancelled the task")
            task.touch()
        return {}

    def _found(self, context: Any, params: Any) -> Task | JsonDict:
        """A task of this server, or what another has kept of it. Raises MCPError for a client that does not know it."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found")
        if not knows_tasks(context):
            needed: JsonDict = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise MCPError(MISSING_CAPABILITY, f"the client does not declare {EXTENSION}", data=needed)
        if context.request is not None and context.request.headers.get("mcp-name") != params.task_id:
            raise MCPError(_HEADER_MISMATCH, "the header Mcp-Name is not the taskId")
        found = self._tasks.get(params.task_id) or self._kept(params.task_id)
        if found is None:
            raise MCPError(mcp_types.INVALID_PARAMS, f"there is no task {params.task_id}")
        return found

    def _file(self, task_id: str) -> Path:
        return self._folder / f"{hashlib.sha256(task_id.encode()).hexdigest()[:32]}.json"

    def _keep(self, task: Task) -> None:
        try:
            make_private(self._folder)
            data = json.dumps({"owner": runtime_id(), **task.describe()}).encode()
            replace_file(os.path.realpath(self._file(task.id)), data)
        except OSError as error:  # this server knows it nevertheless
            log.warning("a task of MCP cannot be kept: %s", error)

    def _kept(self, task_id: str) -> JsonDict | None:
        try:
            found: JsonDict = json.loads(self._file(task_id).read_text())
        except (OSError, ValueError):
            return None
        owner = found.pop("owner")
        if found["status"] in _OPEN and has_exited(owner):
            found.pop("inputRequests", None)
            found |= {"status": "failed", "error": {"code": mcp_types.INTERNAL_ERROR, "message": _ENDED}}
        return found


def knows_tasks(context: Any) -> bool:
    capabilities = context.session.client_capabilities
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and EXTENSION in (getattr(capabilities, "extensions", None) or {})


def _iso(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

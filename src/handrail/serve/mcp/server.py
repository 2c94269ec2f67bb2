"""The MCP server: the selected tools, with every call through the same runtime and gate as any other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...app import Handrail
from ...approval.approvers import ChainApprover, PolicyApprover
from ...base.lazy_module import lazy_import
from ...core.outcome import Outcome, error_of, error_outcome
from ...errors import ToolError, TooManyCalls, UnknownTool
from ...types import CancelToken, Progress
from .approval_requests import CallInProgress, ClientApprover, ParkedCalls, current
from .stdio import stdio_streams

if TYPE_CHECKING:
    import mcp_types
    from mcp_types import version

    from mcp import server as sdk
else:
    mcp_types, sdk, version = map(lazy_import, ("mcp_types", "mcp.server", "mcp_types.version"))


SESSION_HEADER = "mcp-session-id"
DEFAULT_TOOLSETS = ("handrail-mcp",)
ONLY_CLIENT = "mcp"
# Of one client at once. Ending so many takes a few seconds when the client goes away.
MAX_OPEN_CALLS = 128


class HandrailServer:
    """Serves one Handrail. `backend` is where the clients' commands run; each client's session has its own environment."""

    def __init__(self, app: Handrail, *, toolsets: Sequence[str] = DEFAULT_TOOLSETS, backend: str = "") -> None:
        self._app = app
        self._toolsets = list(toolsets)
        self._backend = backend
        self._parked = ParkedCalls()
        self._placed: set[str] = set()
        self._chosen: tuple[int, frozenset[str]] = (-1, frozenset())
        self._open: dict[str, int] = {}
        self._ask_at_client()
        app.runtime.path.isolates = True
        if backend:  # an unknown one fails now, not at the first command
            app.environments.override(ONLY_CLIENT, {"backend": backend})

    def _ask_at_client(self) -> None:
        runtime = self._app.runtime
        runtime.approver = ChainApprover(ClientApprover(), runtime.approver or PolicyApprover())

    def build(self) -> sdk.Server[Any]:
        return sdk.Server("handrail", version=__version__, on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, _: Any, __: Any) -> Any:
        return mcp_types.ListToolsResult(
            tools=[mcp_types.Tool.model_validate(each) for each in await self._definitions()]
        )

    async def _definitions(self) -> list[dict[str, Any]]:
        # Availability checks may take a moment, and must not block calls.
        return await asyncio.to_thread(
            lambda: self._app.definitions.list(
                self._toolsets, list(self._app.config.tools.disabled_toolsets), quiet=True, format="mcp"
            )
        )

    async def _call(self, context: Any, params: Any) -> Any:
        """A client that sends calls without end, and reads no answers, cannot keep more than a number of them open."""
        owner = _owner(context)
        if self._open.get(owner, 0) >= MAX_OPEN_CALLS:
            return answer_of(
                error_outcome(TooManyCalls(f"{MAX_OPEN_CALLS} calls are open already; wait for an answer"))
            )
        self._open[owner] = self._open.get(owner, 0) + 1
        try:
            return await self._answer(context, params)
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]

    async def _answer(self, context: Any, params: Any) -> Any:
        try:
            call = (
                await self._resumed(context, params) if params.request_state else await self._started(context, params)
            )
        except ToolError as error:
            return answer_of(error_outcome(error))
        assert call.work is not None
        waiters: set[asyncio.Future[Any]] = {call.work, call.asked} if call.may_park else {call.work}
        try:
            await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            call.cancel.cancel("the client cancelled the call")
            call.work.cancel()
            raise
        if call.work.done():
            return answer_of(call.work.result())
        return self._parked.park(call, call.asked.result())

    async def _started(self, context: Any, params: Any) -> CallInProgress:
        names = self._names()
        if params.name not in names:
            raise UnknownTool(f"Unknown tool: {params.name}")
        owner = _owner(context)
        await self._place(owner)
        call = CallInProgress(params.name, params.arguments or {}, owner, CancelToken())
        call.can_ask = _can_ask(context)
        call.session = context.session if _has_back_channel(context) else None
        current.set(call)  # the work below is started with a copy of this context
        call.work = asyncio.ensure_future(
            self._app.runtime.ahandle(
                params.name,
                params.arguments or {},
                owner,
                None,
                owner,
                tool_call_id=str(context.request_id),
                cancel=call.cancel,
                on_progress=_Reporter(context),
                enabled_tools=names,
            )
        )
        return call

    async def _resumed(self, context: Any, params: Any) -> CallInProgress:
        identity = (params.name, params.arguments or {}, _owner(context))
        return self._parked.resume(params.request_state, identity, params.input_responses)

    def _names(self) -> frozenset[str]:
        """The tools that may be called now; changes only with the registry."""
        generation = self._app.runtime.registry.generation
        if self._chosen[0] != generation:
            select = self._app.toolsets.select
            chosen = frozenset(select(self._toolsets, list(self._app.config.tools.disabled_toolsets)))
            self._chosen = (generation, chosen)
        return self._chosen[1]

    async def _place(self, task_id: str) -> None:
        if self._backend and task_id not in self._placed:
            self._placed.add(task_id)
            await asyncio.to_thread(self._app.environments.override, task_id, {"backend": self._backend})


def _owner(context: Any) -> str:
    """The task of a call: one per session over HTTP; over stdio there is one client."""
    request = context.request
    session = request.headers.get(SESSION_HEADER) if request is not None else None
    return f"mcp-{session}" if session else ONLY_CLIENT


def _has_back_channel(context: Any) -> bool:
    return context.protocol_version not in version.MODERN_PROTOCOL_VERSIONS


def _can_ask(context: Any) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


class _Reporter:
    """Reports a call's progress to the client. Handlers may run on any thread."""

    def __init__(self, context: Any) -> None:
        self._session = context.session
        self._loop = asyncio.get_running_loop()
        self._count = 0.0

    def __call__(self, update: Progress) -> None:
        asyncio.run_coroutine_threadsafe(self._send(update), self._loop)

    async def _send(self, update: Progress) -> None:
        self._count += 1
        total = 1.0 if update.fraction is not None else None
        progress = self._count if update.fraction is None else update.fraction
        with contextlib.suppress(Exception):  # the client is gone, or did not ask for it
            await self._session.report_progress(progress, total, update.message)


async def serve_stdio(server: sdk.Server[Any]) -> None:
    async with stdio_streams() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def check_toolsets(app: Handrail, names: Sequence[str]) -> None:
    """Raises UnknownToolset now, not at the client's first request."""
    for name in names:
        app.toolsets.resolve(name)


_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def answer_of(outcome: Outcome) -> mcp_types.CallToolResult:
    """Text, also as data if it is an object; images and audio as such; a failure is marked as an error."""
    if isinstance(outcome, dict):
        return mcp_types.CallToolResult(content=[_block(part) for part in outcome["content"]])
    data = _object_in(outcome)
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text=outcome)], structured_content=data, is_error=error_of(outcome) is not None
    )


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _block(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return mcp_types.TextContent(text=str(part.get("text") or ""))
    if kind == "image_url":
        picture = _DATA_URL.fullmatch(str(part.get("image_url", {}).get("url", "")))
        if picture:
            return mcp_types.ImageContent(data=picture[2], mime_type=picture[1])
    if kind == "input_audio":
        sound = part["input_audio"]
        return mcp_types.AudioContent(data=sound["data"], mime_type=f"audio/{sound.get('format', 'wav')}")
    return mcp_types.TextContent(text=json.dumps(part, default=str))

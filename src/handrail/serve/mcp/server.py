"""What an MCP client finds: the selected tools, each call through the same runtime and gate as any other."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...core.outcome import error_outcome
from ...errors import ToolError, UnknownTool
from ...types import CancelToken, Progress
from .approval_requests import CallUnderWay, ClientApprover, Waiting, current
from .results import answer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server import Server

    from ...app import Handrail

SESSION_HEADER = "mcp-session-id"
DEFAULT_TOOLSETS = ("handrail-mcp",)
ONLY_CLIENT = "mcp"


class HandrailServer:
    """Serves one Handrail. `backend` is where the clients' commands run; each client's session has its own environment."""

    def __init__(self, here: Handrail, *, toolsets: Sequence[str] = DEFAULT_TOOLSETS, backend: str = "") -> None:
        self._here = here
        self._toolsets = list(toolsets)
        self._backend = backend
        self._waiting = Waiting()
        self._placed: set[str] = set()
        self._chosen: tuple[int, frozenset[str]] = (-1, frozenset())
        self._ask_at_client()
        if backend:  # one that does not exist is told now, not at the first command
            here.environments.override(ONLY_CLIENT, {"backend": backend})

    def _ask_at_client(self) -> None:
        from ...approval.approvers import ChainApprover, PolicyApprover

        runtime = self._here.runtime
        runtime.approver = ChainApprover(ClientApprover(), runtime.approver or PolicyApprover())

    def build(self) -> Server[Any]:
        from mcp.server import Server

        return Server("handrail", version=__version__, on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, _: Any, __: Any) -> Any:
        from mcp_types import ListToolsResult, Tool

        return ListToolsResult(tools=[Tool.model_validate(each) for each in await self._definitions()])

    async def _definitions(self) -> list[dict[str, Any]]:
        # Checks of availability may take a moment, and calls go on meanwhile.
        return await asyncio.to_thread(
            lambda: self._here.definitions.list(
                self._toolsets, list(self._here.config.tools.disabled_toolsets), quiet=True, format="mcp"
            )
        )

    async def _call(self, context: Any, params: Any) -> Any:
        try:
            call = await self._resumed(context, params) if params.request_state else await self._begun(context, params)
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
        return self._waiting.park(call, call.asked.result())

    async def _begun(self, context: Any, params: Any) -> CallUnderWay:
        names = self._names()
        if params.name not in names:
            raise UnknownTool(f"Unknown tool: {params.name}")
        owner = _owner(context)
        await self._place(owner)
        call = CallUnderWay(params.name, params.arguments or {}, owner, CancelToken())
        call.can_ask = _can_ask(context)
        call.session = context.session if _has_back_channel(context) else None
        current.set(call)  # the work below is started with a copy of this context
        call.work = asyncio.ensure_future(
            self._here.runtime.ahandle(
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

    async def _resumed(self, context: Any, params: Any) -> CallUnderWay:
        identity = (params.name, params.arguments or {}, _owner(context))
        return self._waiting.resume(params.request_state, identity, params.input_responses)

    def _names(self) -> frozenset[str]:
        """What may be called now. It changes only with the registry."""
        generation = self._here.runtime.registry.generation
        if self._chosen[0] != generation:
            select = self._here.toolsets.select
            chosen = frozenset(select(self._toolsets, list(self._here.config.tools.disabled_toolsets)))
            self._chosen = (generation, chosen)
        return self._chosen[1]

    async def _place(self, task_id: str) -> None:
        if self._backend and task_id not in self._placed:
            self._placed.add(task_id)
            await asyncio.to_thread(self._here.environments.override, task_id, {"backend": self._backend})


def _owner(context: Any) -> str:
    """Whose environment a call gets: the session's over HTTP; over stdio there is one client."""
    request = context.request
    session = request.headers.get(SESSION_HEADER) if request is not None else None
    return f"mcp-{session}" if session else ONLY_CLIENT


def _has_back_channel(context: Any) -> bool:
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return context.protocol_version not in MODERN_PROTOCOL_VERSIONS


def _can_ask(context: Any) -> bool:
    capabilities = context.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


class _Reporter:
    """Passes a call's news on to the client. Handlers may run on any thread."""

    def __init__(self, context: Any) -> None:
        self._session = context.session
        self._loop = asyncio.get_running_loop()
        self._count = 0.0

    def __call__(self, news: Progress) -> None:
        asyncio.run_coroutine_threadsafe(self._send(news), self._loop)

    async def _send(self, news: Progress) -> None:
        self._count += 1
        total = 1.0 if news.fraction is not None else None
        progress = self._count if news.fraction is None else news.fraction
        with contextlib.suppress(Exception):  # the client is gone, or did not ask for it
            await self._session.report_progress(progress, total, news.message)


async def serve_stdio(server: Server[Any]) -> None:
    from .stdio import stdio_streams

    async with stdio_streams() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def check_toolsets(here: Handrail, names: Sequence[str]) -> None:
    """Raises UnknownToolset now, not at the client's first question."""
    for name in names:
        here.toolsets.resolve(name)

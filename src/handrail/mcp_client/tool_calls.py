"""Call one tool of a server: straight to its pipe where that is possible, else through the SDK's session."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import ToolFailed
from .result_conversion import result_of
from .schema_checks import check_of
from .server_requests import Caller
from .wire import Lost, Refused

if TYPE_CHECKING:
    import jsonschema_rs

    from mcp import Client

    from ..types import JsonDict, ToolContext
    from .connection import Connection
    from .manager import McpConnections
    from .tool_listing import Listed
    from .wire import Request

_METHOD = "tools/call"


class RemoteTool:
    """A server's tool."""

    def __init__(self, connections: McpConnections, server: str, listed: Listed) -> None:
        self._connections = connections
        self._server = server
        self._name = listed.name
        self._output = listed.output

    def call(self, args: JsonDict, context: ToolContext) -> Any:
        """From sync code the result, inside a running loop an awaitable of it."""
        if asyncio._get_running_loop() is not None:
            return self._awaited(args, context)
        connection = self._direct(context)
        if connection is None:
            return self._by_session(args, context)
        with self._under_way(connection, args, context) as request:
            raw = None if request is None else request.wait(connection.server.settings.timeout)
        return self._by_session(args, context, asked=raw) if raw is None or _asks(raw) else self._result(raw)

    async def _awaited(self, args: JsonDict, context: ToolContext) -> Any:
        connection = self._direct(context)
        if connection is None:
            return await self._by_session(args, context)
        with self._under_way(connection, args, context) as request:
            raw = None if request is None else await request.awaited(connection.server.settings.timeout)
        return await self._by_session(args, context, asked=raw) if raw is None or _asks(raw) else self._result(raw)

    def _direct(self, context: ToolContext) -> Connection | None:
        """The connection, where its pipe can be used; only the session reports progress and tells of traces."""
        is_possible = context.on_progress is None and not _is_traced()
        return self._connections.connection(self._server) if is_possible else None

    @contextlib.contextmanager
    def _under_way(self, connection: Connection, args: JsonDict, context: ToolContext) -> Iterator[Request | None]:
        """The request, when it went to the pipe."""
        asking = self._connections.asking
        caller = Caller.here(context)
        asking.begin(self._server, caller)  # first: the server may ask something as soon as it hears of the call
        forget: Callable[[], object] | None = None
        try:
            request = connection.begin(_METHOD, {"name": self._name, "arguments": args})
            if request is not None:
                forget = context.cancel.on_cancel(request.cancel)
            yield request
        except (TimeoutError, Refused, Lost) as error:
            raise connection.ended(error) from None
        except asyncio.CancelledError:
            if context.cancel.cancelled:
                raise context.cancel.error() from None
            raise
        finally:
            if forget is not None:
                forget()
            asking.end(self._server, caller)
            connection.used()

    def _by_session(self, args: JsonDict, context: ToolContext, *, asked: JsonDict | None = None) -> Any:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", progress / total if total else None)

        async def work(client: Client) -> JsonDict:
            more = {} if asked is None else await _answers(client, asked)
            heard = report if context.on_progress else None
            return result_of(await client.call_tool(self._name, args, progress_callback=heard, **more))

        return self._connections.use(self._server, work, context)

    def _result(self, raw: JsonDict) -> JsonDict:
        from mcp_types import CallToolResult
        from pydantic import ValidationError

        try:
            answer = CallToolResult.model_validate(raw, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise ToolFailed(f"MCP server {self._server}: its answer is not valid: {where}: {first['msg']}") from None
        if self._output and not answer.is_error:
            self._check_output(answer)
        return result_of(answer)

    def _check_output(self, answer: Any) -> None:
        data, check = answer.structured_content, self._output_check
        if data is None or (check is not None and not check.is_valid(data)):
            raise ToolFailed(f"MCP server {self._server}: its answer does not fit the tool's own output schema")

    @cached_property
    def _output_check(self) -> jsonschema_rs.Validator | None:
        return check_of(self._output)


def _asks(raw: JsonDict) -> bool:
    """Whether the server wants something first, as the newer revisions say it."""
    return raw.get("resultType") == "input_required"


async def _answers(client: Client, asked: JsonDict) -> JsonDict:
    """What the call is sent again with, so that the server goes on with it."""
    from mcp.client.session import ClientRequestContext
    from mcp.shared.exceptions import MCPError
    from mcp_types import ErrorData, InputRequiredResult

    wanted = InputRequiredResult.model_validate(asked, by_name=False)
    answers: JsonDict = {}
    for key, each in (wanted.input_requests or {}).items():
        about = ClientRequestContext(session=client.session, request_id=key)
        answer = await client.session.dispatch_input_request(about, each)
        if isinstance(answer, ErrorData):
            raise MCPError(code=answer.code, message=answer.message)
        answers[key] = answer
    return {"input_responses": answers or None, "request_state": wanted.request_state}


def _is_traced() -> bool:
    """Whether somebody collects traces: the session tells the server of them."""
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)

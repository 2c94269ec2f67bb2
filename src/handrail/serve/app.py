"""The server as one ASGI application: every request is checked, authorized, parsed, handled, audited, and answered as JSON."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .access_control import Guard, WrongCredentials, read_body
from .endpoint import SECURITY_HEADERS, Endpoint, HttpError, RequestContext, as_response, refusal
from .gateway.gateway import Gateway
from .http import endpoints
from .mcp.http import McpEndpoint
from .shared_state import CONSOLE, Served

log = logging.getLogger(__name__)

# How soon a stream ends after its client's token was revoked, if anything is sent on it.
_CHECK_SECONDS = 2.0
_NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>Handrail</title>
<p>The API runs, but this installation has no web console. It is built with npm: install npm and then Handrail again, or run
<code>make console</code> in a clone.</p>
"""


def build(served: Served, guard: Guard) -> Starlette:
    methods: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints():
        methods.setdefault(endpoint.path, {})[endpoint.method] = _handler(served, guard, endpoint)
    routes = [Route(path, _by_method(handlers), methods=list(handlers)) for path, handlers in methods.items()]
    routes += console()
    mcp = McpEndpoint(served.app, guard) if find_spec("mcp") is not None else None  # the SDK is optional
    if mcp is not None:
        routes.append(Route("/mcp", mcp))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(served.running())
            if mcp is not None:
                await stack.enter_async_context(mcp.running())
            if served.app.config.gateway.accounts:
                await stack.enter_async_context(Gateway(served).running())
            yield

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _unknown, 405: _unknown, 500: _broken})
    app.state.guard = guard
    app.add_middleware(_OurHost, guard=guard)
    app.add_middleware(_Headers)
    return app


def _handler(served: Served, guard: Guard, endpoint: Endpoint) -> Any:
    async def handle(request: Request) -> Response:
        who, detail, entry = None, "", None
        try:
            who = guard.admit(request, endpoint.role)
            query = endpoint.read_query(request.query_params)
            body = endpoint.read_body(await read_body(request)) if endpoint.body is not None else None
            context = RequestContext(served, who, request.path_params, query, body, request)
            detail = endpoint.detail(context)
            if request.method != "GET" and endpoint.role is not None:
                # Before it happens: what cannot be audited does not happen.
                entry = await guard.audit_begin(request, who, detail)
            if asyncio.iscoroutinefunction(endpoint.handler):
                response = as_response(await endpoint.handler(context))
            else:
                response = as_response(await asyncio.to_thread(endpoint.handler, context))
            if isinstance(response, StreamingResponse) and endpoint.role is not None:
                response.body_iterator = _while_valid(response.body_iterator, partial(served.keys.is_valid, who))
        except Exception as error:
            response = refusal(error)
            if response.status_code >= 500 and not isinstance(error, HttpError):
                log.exception("%s %s", request.method, endpoint.path)
            if isinstance(error, WrongCredentials):
                guard.audit(request, None, response.status_code, f"{detail} refused: {error}".strip())
                return response
        logged_in = getattr(request.state, "logged_in", None)
        if entry is not None:
            await guard.audit_end(entry, response.status_code)
        elif logged_in is not None or (who is not None and request.method != "GET" and endpoint.role is not None):
            guard.audit(request, logged_in or who, response.status_code, detail)
        return response

    return handle


async def _while_valid(pieces: Any, is_valid: Callable[[], bool]) -> AsyncIterator[Any]:
    """The pieces of a stream, until the credentials that it was opened with are revoked."""
    checked = time.monotonic()
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            if time.monotonic() - checked > _CHECK_SECONDS:
                if not await asyncio.to_thread(is_valid):
                    return
                checked = time.monotonic()
            yield piece


def _by_method(handlers: dict[str, Any]) -> Any:
    async def handle(request: Request) -> Response:
        response: Response = await handlers["GET" if request.method == "HEAD" else request.method](request)
        return response

    return handle


async def _unknown(request: Request, error: Any) -> Response:
    what = f"{request.method} {request.url.path[:200]}"
    response = refusal(HttpError(error.status_code, "not_found", f"there is no {what}"))
    response.headers.update(error.headers or {})  # the allowed methods
    return response


async def _broken(_: Request, error: Exception) -> Response:
    return refusal(error)


class _OurHost:
    """Rejects requests with a foreign Host or Origin."""

    def __init__(self, app: Any, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            try:
                self._guard.check_origin(Request(scope))
            except HttpError as error:
                await refusal(error)(scope, receive, send)
                return
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)


class _Headers:
    """Adds the security headers to every response."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._headers = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in self._headers if each[0] not in present)]
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


def console() -> list[Any]:
    """Its routes. The pages are public, their data is not."""

    async def index(_: Any) -> Response:
        page = CONSOLE / "index.html"
        return FileResponse(page) if page.is_file() else HTMLResponse(_NOT_BUILT)

    # A login link shows the same page, which sends the link's code: whatever only looks at the link does not use it up.
    routes: list[Any] = [Route(path, index, methods=["GET"]) for path in ("/", "/login")]
    if (CONSOLE / "assets").is_dir():
        routes.append(Mount("/assets", StaticFiles(directory=CONSOLE / "assets")))
    return routes

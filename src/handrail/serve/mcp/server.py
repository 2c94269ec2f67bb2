"""The MCP server: the selected tools, with every call through the same runtime and gate as any other."""

import asyncio
import contextlib
import hashlib
import itertools
import json
import warnings
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

import mcp_types
from mcp.server import NotificationOptions, Server, subscriptions
from mcp.server.caching import CacheHint
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_to_notification

from ... import __version__
from ...app import Handrail
from ...approval.requests import ChainApprover, PolicyApprover
from ...config.paths import state_dir
from ...core.outcome import error_of, error_outcome
from ...errors import HandrailError, TooManyCalls
from ...types import JsonDict
from .client_requests import LEVELS, ClientApprover, ClientRequest, ParkedRequests, current
from .offers import Offers, answer_of, passed_on
from .stdio import stdio_streams
from .tasks import TASK_AFTER_SECONDS, Tasks, knows_tasks

SESSION_HEADER = "mcp-session-id"
DEFAULT_TOOLSETS = ("handrail-mcp",)
ONLY_CLIENT = "mcp"
# Of one client at once. Ending so many takes a few seconds when the client goes away.
MAX_OPEN_CALLS = 128
# How long the first list waits for MCP servers behind this one: many clients list once.
FIRST_LIST_SECONDS = 10.0
WATCH_SECONDS = 0.2
_SLOW_TICKS = 10
_CHANGED = {
    "tools": subscriptions.ToolsListChanged,
    "prompts": subscriptions.PromptsListChanged,
    "resources": subscriptions.ResourcesListChanged,
}
# Titles, hints and output schemas of the built-in tools.
_LISTING = Path(__file__).with_name("tool_listing.json")
INSTRUCTIONS = Path(__file__).with_name("instructions.txt").read_text("utf-8").strip()

_RAIL = '<path d="M6 22V11h20v11M12 11v11M20 11v11" fill="none" stroke="#1f6f5c" stroke-width="3"/>'


def _icon(drawing: str) -> JsonDict:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{drawing}</svg>'
    return {"src": f"data:image/svg+xml,{quote(svg)}", "mimeType": "image/svg+xml", "sizes": ["any"]}


class HandrailServer:
    """Serves one Handrail. `backend` is where the clients' commands run; each client's session has its own environment."""

    def __init__(self, app: Handrail, *, toolsets: Sequence[str] = DEFAULT_TOOLSETS, backend: str = "") -> None:
        self._app = app
        self._toolsets = list(toolsets)
        self._backend = backend
        self._parked, self._tasks = ParkedRequests(), Tasks(state_dir(app.config.home) / "mcp" / "tasks")
        self._placed: set[str] = set()
        self._chosen: tuple[int, frozenset[str]] = (-1, frozenset())
        # The history of the agent is for those who get everything, or asked for it by name.
        self._offers = Offers(app, self._names, sessions=tuple(toolsets) == DEFAULT_TOOLSETS)
        self._listing: JsonDict = json.loads(_LISTING.read_text())
        self._has_waited = False
        self._log_levels: dict[str, str] = {}
        self._clients: weakref.WeakSet[Any] = weakref.WeakSet()  # of the handshake family
        self._subscribers: dict[str, weakref.WeakSet[Any]] = {}  # those who subscribed to an address
        self._listeners: list[Any] = []  # what clients of the newer family subscribed to
        self._known: dict[str, list[str]] = {}  # what the clients know of each list
        self._open: Counter[str] = Counter()
        app.runtime.approver = ChainApprover(ClientApprover(), app.runtime.approver or PolicyApprover())
        app.runtime.path.isolates = True
        if backend:  # an unknown one fails now, not at the first command
            app.environments.override(ONLY_CLIENT, {"backend": backend})

    def build(self) -> Server[Any]:
        self._bus = subscriptions.InMemorySubscriptionBus()
        listen = subscriptions.ListenHandler(self._bus)

        async def listening(context: Any, params: Any) -> Any:
            self._listeners.append(params.notifications)
            try:
                return await listen(context, params)
            finally:
                self._listeners.remove(params.notifications)

        private = CacheHint(ttl_ms=0, scope="private")
        lists: Any = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # older clients set a level of the log
            server: Server[Any] = Server(
                "handrail",
                version=__version__,
                title="Handrail",
                icons=[mcp_types.Icon.model_validate(_icon(_RAIL))],
                instructions=INSTRUCTIONS,
                lifespan=self._lifespan,
                cache_hints=dict.fromkeys(lists, private),
                on_list_tools=self._list,
                on_call_tool=self._call,
                on_list_prompts=self._list_prompts,
                on_get_prompt=self._get_prompt,
                on_list_resources=self._list_resources,
                on_list_resource_templates=self._list_templates,
                on_read_resource=lambda _, params: self._offers.read(str(params.uri)),
                on_subscribe_resource=self._subscribe,
                on_unsubscribe_resource=self._unsubscribe,
                on_subscriptions_listen=listening,
                on_completion=self._complete,
                on_set_logging_level=self._set_level,
            )
        changed = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        # The HTTP transports ask for these options without arguments.
        options = partial(server.create_initialization_options, changed)
        server.create_initialization_options = options  # type: ignore[method-assign]
        self._tasks.add_to(server)
        return server

    async def _list(self, context: Any, _: Any) -> Any:
        if not self._has_waited and self._app.mcp is not None:
            await asyncio.to_thread(self._app.mcp.start, FIRST_LIST_SECONDS)
        self._has_waited = True
        tools = await self._definitions()
        self._note(context, "tools", _names_of(tools))
        return mcp_types.ListToolsResult(tools=[mcp_types.Tool.model_validate(self._described(each)) for each in tools])

    async def _definitions(self) -> list[dict[str, Any]]:
        # Availability checks may take a moment, and must not block calls.
        disabled = list(self._app.config.tools.disabled_toolsets)
        find = partial(self._app.definitions.list, self._toolsets, disabled, quiet=True, format="mcp")
        return await asyncio.to_thread(find)

    def _described(self, tool: JsonDict) -> JsonDict:
        """With its title, hints and output schema: ours, or those of the MCP server that it comes from."""
        remote = self._app.mcp.listed(tool["name"]) if self._app.mcp is not None else None
        if remote is not None:
            title = {"title": remote.title} if remote.title else {}
            return {**tool, **title, "annotations": {**tool["annotations"], **remote.annotations}}
        known = dict(self._listing.get(tool["name"], {}))
        sign = f'<text y="26" font-size="26">{escape(self._app.registry.get_emoji(tool["name"]))}</text>'
        hints = {**tool["annotations"], **known.pop("annotations", {})}
        return {**tool, "annotations": hints, "icons": [_icon(sign)], **known}

    async def _list_prompts(self, context: Any, _: Any) -> Any:
        prompts = await asyncio.to_thread(self._offers.prompts)
        self._note(context, "prompts", sorted(prompts))
        return mcp_types.ListPromptsResult.model_validate({"prompts": [each._asdict() for each in prompts.values()]})

    async def _list_resources(self, context: Any, _: Any) -> Any:
        found = await asyncio.to_thread(self._offers.resources)
        self._note(context, "resources", [each.uri for each in found])
        return mcp_types.ListResourcesResult.model_validate({"resources": [each._asdict() for each in found]})

    async def _list_templates(self, _: Any, __: Any) -> Any:
        found = await asyncio.to_thread(self._offers.templates)
        about = [{**each._asdict(), "uri_template": each.uri} for each in found]
        return mcp_types.ListResourceTemplatesResult.model_validate({"resource_templates": about})

    async def _complete(self, _: Any, params: Any) -> Any:
        name = params.ref.name if params.ref.type == "ref/prompt" else str(params.ref.uri)
        asked = (params.ref.type, name, params.argument.name, params.argument.value)
        values = await asyncio.to_thread(self._offers.complete, *asked)
        return mcp_types.CompleteResult(completion=mcp_types.Completion(values=values))

    async def _set_level(self, context: Any, params: Any) -> Any:
        self._log_levels[_owner(context)] = params.level
        return mcp_types.EmptyResult()

    async def _call(self, context: Any, params: Any) -> Any:
        if params.name not in self._names():
            raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        owner = _owner(context)
        if self._open[owner] >= MAX_OPEN_CALLS:  # it sends calls without end, and reads no answers
            too_many = TooManyCalls(f"{MAX_OPEN_CALLS} calls are open already; wait for an answer")
            return answer_of(error_outcome(too_many))
        self._open[owner] += 1
        try:
            return await self._run(context, params, lambda request: self._tool_result(context, params, request))
        finally:
            self._open -= Counter([owner])  # which keeps no zeros

    async def _tool_result(self, context: Any, params: Any, request: ClientRequest) -> Any:
        owner = _owner(context)
        await self._place(owner)
        current.set(request)
        outcome = await self._app.runtime.ahandle(
            params.name,
            params.arguments or {},
            task_id=owner,
            session_id=owner,
            tool_call_id=str(context.request_id),
            cancel=request.cancel,
            on_progress=request.report,
            enabled_tools=self._names(),
            client=request,
        )
        if request.failure is not None and error_of(outcome) is not None:
            raise request.failure
        if self._app.mcp is not None and self._app.mcp.listed(params.name) is not None:
            return passed_on(outcome)
        return answer_of(outcome, has_schema="outputSchema" in self._listing.get(params.name, {}))

    async def _get_prompt(self, context: Any, params: Any) -> Any:
        arguments = params.arguments or {}
        return await self._run(context, params, lambda request: self._offers.get(params.name, arguments, request))

    async def _run(self, context: Any, params: Any, work: Callable[[ClientRequest], Coroutine[Any, Any, Any]]) -> Any:
        """The result; or what is needed of the client first; or a task, if it takes long and the client knows them."""
        identity = (context.method, params.name, params.arguments or {}, _owner(context))
        if params.request_state:
            request = self._parked.resume(context, params, identity)
        else:
            level = self._log_levels.get(identity[-1], LEVELS[0])
            request = ClientRequest(context, params, identity, log_level=level)
            request.start(work(request))
        limit = TASK_AFTER_SECONDS if context.method == "tools/call" and knows_tasks(context) else None
        while not request.work.done() and not request.pending:
            asked = asyncio.ensure_future(request.asked.wait())
            try:
                done, _ = await asyncio.wait({request.work, asked}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                request.give_up("the client cancelled the call")
                raise
            finally:
                asked.cancel()
            if not done:
                return self._tasks.start(request)
        return await request.result() if request.work.done() else self._parked.park(request)

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

    def _note(self, context: Any, kind: str, listed: list[str]) -> None:
        """Remember what was listed, and a client that is told of changes on its own channel; the newer family subscribes."""
        self._known.setdefault(kind, listed)
        if context.session.can_send_request:
            self._clients.add(context.session._connection)

    async def _subscribe(self, context: Any, params: Any) -> Any:
        self._subscribers.setdefault(str(params.uri), weakref.WeakSet()).add(context.session._connection)
        return mcp_types.EmptyResult()

    async def _unsubscribe(self, context: Any, params: Any) -> Any:
        self._subscribers.get(str(params.uri), weakref.WeakSet()).discard(context.session._connection)
        return mcp_types.EmptyResult()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[JsonDict]:
        watching = asyncio.ensure_future(self._watch())
        try:
            yield {}
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        """Notify the clients when the tools, prompts or resources have changed, or the content that they subscribed to."""
        quick: tuple[Any, ...] = ()
        contents: dict[str, str] = {}
        for tick in itertools.count():
            await asyncio.sleep(WATCH_SECONDS)
            before, quick = quick, (self._app.runtime.registry.generation, *self._offers.contributed())
            # Availability and files are looked at less often: that takes longer.
            if quick == before and tick % _SLOW_TICKS:
                continue
            if self._clients or self._listeners:
                with contextlib.suppress(HandrailError):  # a store or a toolset that cannot be read now
                    await self._notify_of_lists()
            uris = {str(uri) for each in self._listeners for uri in each.resource_subscriptions or ()}
            uris |= {uri for uri, clients in self._subscribers.items() if clients}
            known, contents = contents, {uri: await self._hash(uri) for uri in uris}
            for uri in uris:
                if known.get(uri, contents[uri]) != contents[uri]:
                    await self._notify(subscriptions.ResourceUpdated(uri=uri), self._subscribers.get(uri, ()))

    async def _notify_of_lists(self) -> None:
        resources = await asyncio.to_thread(self._offers.resources)
        prompts = await asyncio.to_thread(self._offers.prompts)
        now = {"tools": _names_of(await self._definitions()), "prompts": sorted(prompts)}
        for kind, listed in {**now, "resources": [each.uri for each in resources]}.items():
            if self._known.setdefault(kind, listed) != listed:
                self._known[kind] = listed
                await self._notify(_CHANGED[kind](), self._clients)

    async def _hash(self, uri: str) -> str:
        text = ""
        with contextlib.suppress(MCPError):
            text = (await self._offers.read(uri)).model_dump_json()
        return hashlib.sha256(text.encode()).hexdigest()

    async def _notify(self, event: Any, clients: Iterable[Any]) -> None:
        await self._bus.publish(event)
        message = event_to_notification(event, {}).model_dump(by_alias=True, mode="json", exclude_none=True)
        for client in list(clients):
            with contextlib.suppress(Exception):  # it is gone
                await client.outbound.notify(message["method"], message.get("params"))


def _names_of(tools: list[JsonDict]) -> list[str]:
    """With their descriptions and schemas, which may change too."""
    return [json.dumps(each, default=str) for each in tools]


def _owner(context: Any) -> str:
    """The task of a call: one per session over HTTP; over stdio there is one client."""
    request = context.request
    session = request.headers.get(SESSION_HEADER) if request is not None else None
    return f"mcp-{session}" if session else ONLY_CLIENT


async def serve_stdio(server: Server[Any]) -> None:
    async with stdio_streams() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())

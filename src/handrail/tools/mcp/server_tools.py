"""The tools of MCP servers as tools of a registry: `mcp__server__tool`, in the toolset `mcp-server`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ...base.safe_text import safe_error, suspicion_of
from ...core.registry import ToolRegistry, registry
from ...egress.questions import why_denied
from ...environments.protection import launcher
from ...errors import HandrailError, RegistrationError, ToolUnavailable
from ...mcp_client.connection import State
from ...mcp_client.manager import CLOSE_SECONDS, McpConnections
from ...mcp_client.oauth import Browse
from ...mcp_client.result_conversion import prompt_of, resource_of, result_of
from ...mcp_client.sdk import exceptions, mcp
from ...mcp_client.server_config import Server
from ...mcp_client.tool_listing import Listed, Offer, Pins
from ...protocols import Action, ActionKind, Preview
from ...settings.schema import Config
from ...types import JsonDict, ToolContext, Unavailable

log = logging.getLogger(__name__)

PREFIX = "mcp__"
START_SECONDS = 1.5
_MAX_NAME = 64
_MAX_INSTRUCTIONS = 10_000
Work = Callable[["mcp.Client", JsonDict, ToolContext], Awaitable[Any]]


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool for models. A name that is too long is cut, with a hash in place of the rest."""
    name = f"{PREFIX}{server}__{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= _MAX_NAME and name.endswith(f"__{tool}"):
        return name
    return f"{name[: _MAX_NAME - 9]}_{hashlib.sha256(tool.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def discover_mcp_tools(app: Any = None) -> list[str]:
    """Connect to the configured servers, register their tools and return the tools' names. Safe to call twice. `app` is a
    Handrail; None means the default one. Waits until each server is connected or has failed once, at most its
    `connect_timeout`; a server that connects later adds its tools then."""
    # By name, as the application is a row above: only this documented function needs the default one.
    tools: McpTools | None = (app or import_module("handrail.model_tools").default()).mcp
    if tools is None:
        return []
    servers = [server for server in tools.connections.servers.values() if server.settings.enabled]
    tools.start(max((server.settings.connect_timeout for server in servers), default=0.0))
    return tools.names()


class McpTools:
    """The servers' tools in a registry, kept up to date with the servers. With `browse`, which shows a page to the user, a
    server that wants a login gets one. `folder` holds the trusted definitions. By `config` the programs of servers are
    protected, and hosts are denied."""

    def __init__(
        self,
        servers: Sequence[Server],
        into: ToolRegistry = registry,
        *,
        browse: Browse | None = None,
        folder: Path | None = None,
        config: Config | None = None,
    ) -> None:
        self._folder = folder
        policy: JsonDict = {}
        if config is not None:
            policy = {"launch": launcher(config), "why_denied": lru_cache(partial(why_denied, config=config))}
            servers = [each._replace(problem=each.problem or why_denied(each.settings.url, config)) for each in servers]
        self.connections = McpConnections(servers, on_offer=self._register_offer, browse=browse, **policy)
        self.doubts: dict[str, dict[str, str]] = {}
        self._registry = into
        self._names: dict[str, set[str]] = {}
        self._listed: dict[str, Listed] = {}
        self._not_installed = ""
        self._lock = threading.Lock()

    def start(self, wait: float = START_SECONDS) -> None:
        """Servers that need longer than `wait` seconds add their tools when they are connected."""
        if self._start():
            self.connections.wait(wait)

    def _start(self, names: Sequence[str] | None = None) -> bool:
        """False without the package that it takes: everything else goes on."""
        try:
            self.connections.start(names)
        except ToolUnavailable as error:
            if not self._not_installed:
                self._not_installed = str(error)
                log.warning("%s", error)
            return False
        return True

    def names(self) -> list[str]:
        with self._lock:
            return sorted(name for names in self._names.values() for name in names)

    def listed(self, name: str) -> Listed | None:
        """How the server describes a tool that is registered under this name."""
        return self._listed.get(name)

    def instructions(self, tools: Collection[str]) -> str:
        """What the servers of these tools say about them: as a quotation, so that it cannot pass for anything else, and at
        most 2,000 characters per server. What seems to give orders is left out."""
        quoted = []
        for server in self.connections.servers:
            text = safe_error(self.connections.offer(server).instructions)
            if not text or not any(name in tools for name in self._names.get(server, ())):
                continue
            if why := suspicion_of(text):
                log.warning("the instructions of MCP server %s are not shown to the model: it %s", server, why)
                continue
            quoted.append(f"{server}:\n" + "\n".join(f"> {line}" for line in text.splitlines()))
        return "\n".join(quoted)[:_MAX_INSTRUCTIONS]

    def find(self, name: str) -> str:
        """Connect to the server that a tool or toolset name belongs to, if any. Returns why it cannot be reached; else empty."""
        server = name.removeprefix(PREFIX).partition("__")[0] if name.startswith(PREFIX) else name.removeprefix("mcp-")
        problem = self.reach(server) if server in self.connections.servers else ""
        return f"MCP server {server}: {problem}" if problem else ""

    def reach(self, name: str) -> str:
        """Connect to one server and wait until it answers or has failed. Returns why it cannot be used; empty if it can."""
        server = self.connections.servers[name]
        if not server.problem and server.settings.enabled and self._start([name]):
            # It is ended before it has failed.
            self.connections.wait(server.settings.connect_timeout + CLOSE_SECONDS, [name])
        return self._why_missing(server)

    def absent(self) -> dict[str, str]:
        wanted = [server for server in self.connections.servers.values() if server.settings.enabled]
        return {server.name: why for server in wanted if (why := self._why_missing(server))}

    def _why_missing(self, server: Server) -> str:
        status = self.connections.status().get(server.name)
        if server.problem or status is None:
            return server.problem or self._not_installed or "it is not enabled"
        if status.state in (State.READY, State.PARKED):
            return ""
        return status.error or f"it has not answered yet; `handrail mcp test {server.name}` waits longer"

    def close(self) -> None:
        self.connections.close()
        with self._lock:
            for name in {name for names in self._names.values() for name in names}:
                self._registry.deregister(name)
            self._names.clear()

    def _register_offer(self, server: Server, offer: Offer) -> None:
        """Register what the server offers now, and remove what it does not offer any more."""
        with self._lock:
            if offer.left_out:
                log.warning("MCP server %s has %d more tools than max_tools", server.name, offer.left_out)
            try:
                doubts = Pins(server, self._folder).review(offer.tools)
            except (HandrailError, OSError) as error:  # without the comparison nothing is trusted
                doubts = {tool.name: str(error) for tool in offer.tools}
            self.doubts[server.name] = doubts
            now: set[str] = set()
            for tool in offer.tools:
                now |= self._register(server, tool, _call(tool), doubts.get(tool.name, ""))
            for tool, work in _extras(server.name, offer):
                if tool_name(server.name, tool.name) not in now:  # the server has no tool of that name
                    now |= self._register(server, tool, work)
            for name in self._names.get(server.name, set()) - now:
                self._registry.deregister(name)
            self._names[server.name] = now
            if now:
                self._registry.register_toolset_alias(server.name, f"mcp-{server.name}")

    def _register(self, server: Server, tool: Listed, work: Work, doubt: str = "") -> set[str]:
        """Returns the registered name; nothing if the tool cannot be registered."""
        name = tool_name(server.name, tool.name)
        why = tool.problem or doubt
        fix = f"review it with `handrail mcp tools {server.name}`, then `handrail mcp trust {server.name}`"
        problem = Unavailable(why, "" if tool.problem else fix)
        # An object schema, even if the server left parts of it out.
        parameters = {**tool.schema, "type": "object", "properties": tool.schema.get("properties") or {}}
        schema = {"description": "" if why else tool.description, "parameters": {} if why else parameters}
        try:
            taken = self._registry.register(
                name=name,
                toolset=f"mcp-{server.name}",
                schema=schema,
                handler=self._handler(server.name, tool, work),
                check_fn=(lambda: problem) if why else None,
                is_async=True,
                emoji="🔌",
                read_only=tool.annotations.get("readOnlyHint") is True,
                actions=_actions(server, tool),
            )
        except RegistrationError as error:
            log.warning("MCP server %s: %s", server.name, error)
            return set()
        if not taken:
            return set()
        self._listed[name] = tool
        return {name}

    def _handler(self, server: str, tool: Listed, work: Work) -> Callable[..., Any]:
        """It returns the result in sync code, an awaitable of it inside a running loop."""

        def handle(args: JsonDict, context: ToolContext) -> Any:
            if context.effects is not None and tool.annotations.get("readOnlyHint") is not True:
                context.effects.uncovered(f"{server}: {tool.name}", "an MCP server does it, which is not watched")
            return self.connections.use(server, lambda client: work(client, args, context), context)

        return handle


def _actions(server: Server, tool: Listed) -> Callable[[JsonDict, ToolContext], list[Action]]:
    """Every call passes the gate, which knows your allow and deny lists. A tool's own hints can only make it ask."""
    hints, ask = tool.annotations, server.settings.ask
    reads = hints.get("readOnlyHint") is True
    details: JsonDict = {"destructive": hints.get("destructiveHint") is True}
    if ask == "always" or (ask == "writes" and not reads):
        rule = f"mcp.{server.name}.{tool.name}"
        details = {"why": f"mcp_servers.{server.name}.ask is {ask}", "rule": rule}

    def actions(args: JsonDict, context: ToolContext) -> list[Action]:
        text = f"{context.tool} {_short(args)}"
        return [Action(ActionKind.TOOL, text, details=details, preview=lambda: Preview(_written_out(args)))]

    return actions


def _short(args: JsonDict) -> str:
    text = json.dumps(args, ensure_ascii=False, default=str)
    return text if len(text) <= 2000 else text[:2000] + "…"


def _written_out(args: JsonDict) -> str:
    """Every argument in full, a text with its own lines. Empty where one line shows all of it."""
    if len(_short(args)) <= 200 and not any("\n" in str(value) for value in args.values()):
        return ""
    write = partial(json.dumps, ensure_ascii=False, default=str, indent=2)
    texts = {name: value if isinstance(value, str) else write(value) for name, value in args.items()}
    return "\n".join(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}" for name, text in texts.items())


def _call(tool: Listed) -> Work:
    async def work(client: mcp.Client, args: JsonDict, context: ToolContext) -> JsonDict:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", progress / total if total else None)

        on_progress = report if context.on_progress else None
        if tool.needs_task:
            from ...mcp_client.tasks import call_as_task  # imports the SDK

            return result_of(await call_as_task(client, tool.name, args, on_progress))
        return result_of(await client.call_tool(tool.name, args, progress_callback=on_progress))

    return work


async def _list_resources(client: mcp.Client, args: JsonDict, _: ToolContext) -> Any:
    def shown(listed: Sequence[Any]) -> list[JsonDict]:
        fields = {"uri", "uri_template", "name", "description", "mime_type"}
        return [each.model_dump(mode="json", include=fields, exclude_none=True) for each in listed]

    page = await client.list_resources(cursor=args.get("cursor"))
    found = {"resources": shown(page.resources)}
    if not args.get("cursor"):
        with contextlib.suppress(exceptions.MCPError):  # older servers have no URI templates for what cannot be listed
            if templates := shown((await client.list_resource_templates()).resource_templates):
                found["resource_templates"] = templates
    return {**found, **({"next_cursor": page.next_cursor} if page.next_cursor else {})}


async def _read_resource(client: mcp.Client, args: JsonDict, _: ToolContext) -> Any:
    return resource_of(await client.read_resource(args["uri"]))


async def _list_prompts(client: mcp.Client, args: JsonDict, _: ToolContext) -> Any:
    page = await client.list_prompts(cursor=args.get("cursor"))
    listed = [each.model_dump(mode="json", include={"name", "description", "arguments"}) for each in page.prompts]
    return {"prompts": listed, **({"next_cursor": page.next_cursor} if page.next_cursor else {})}


async def _get_prompt(client: mcp.Client, args: JsonDict, _: ToolContext) -> Any:
    return prompt_of(await client.get_prompt(args["name"], args.get("arguments")))


# For what a server has besides tools: tools of ours, by what they are for.
_EXTRAS: JsonDict = json.loads(Path(__file__).with_name("extras.json").read_text("utf-8"))
_WORK = {each.__name__[1:]: each for each in (_list_resources, _read_resource, _list_prompts, _get_prompt)}


def _extras(server: str, offer: Offer) -> Iterator[tuple[Listed, Work]]:
    has = {"resources": offer.has_resources, "prompts": offer.has_prompts}
    for name, about in ((name, about) for kind, found in _EXTRAS.items() if has[kind] for name, about in found.items()):
        schema = {"type": "object", **about["parameters"]}
        yield Listed(name, about["description"].format(server), schema, {"readOnlyHint": True}), _WORK[name]

"""What a server offers: its tools (paged and within limits), and whether it has resources and prompts.

The definitions of tools are kept when they are trusted: a tool whose definition changes is hidden from models.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from ..base.safe_text import suspicion_of
from ..config.json_file import JsonFile
from ..config.paths import state_dir
from ..errors import Denied
from ..settings.services import McpServerConfig
from ..types import JsonDict
from .sdk import exceptions, mcp, mcp_types, revisions
from .server_config import Server

_MAX_PAGES, _MAX_SCHEMA_BYTES, _MAX_SCHEMA_DEPTH = 1000, 256 * 1024, 64
_LIST_SECONDS, _FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 2.0, 1.0, 60.0
_REFUSALS = (-32600, -32601, -32602)  # JSON-RPC codes of a server that does not support the request
_MAX_DESCRIPTION = 16_000


class Listed(NamedTuple):
    """One tool as the server describes it. `problem` says why it cannot be used."""

    name: str
    description: str
    schema: JsonDict
    annotations: JsonDict
    problem: str = ""
    title: str = ""
    needs_task: bool = False  # the server runs it only as a task


class Offer(NamedTuple):
    """Everything that a server offers now."""

    tools: tuple[Listed, ...] = ()
    has_resources: bool = False
    has_prompts: bool = False
    left_out: int = 0  # tools over the limit
    instructions: str = ""  # to the model, in the server's words


async def list_offer(client: mcp.Client, settings: McpServerConfig) -> Offer:
    capabilities = client.server_capabilities
    tools: list[Listed] = []
    left_out, cursor, seen = 0, None, set()
    for _ in range(_MAX_PAGES if capabilities.tools is not None else 0):
        page = await client.session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor))
        wanted = [tool for tool in page.tools if is_wanted(tool.name, settings)]
        room = settings.max_tools - len(tools)
        tools += map(_listed, wanted[:room])
        left_out += len(wanted[room:])
        cursor = page.next_cursor
        if not cursor or cursor in seen:
            break
        seen.add(cursor)
    has_resources, has_prompts = await asyncio.gather(
        _has_any(capabilities.resources, client.list_resources, client.list_resource_templates),
        _has_any(capabilities.prompts, client.list_prompts),
    )
    return Offer(tuple(tools), has_resources, has_prompts, left_out, client.instructions or "")


async def _has_any(capability: Any, *lists: Callable[[], Awaitable[Any]]) -> bool:
    """Whether one of the lists has an entry: many servers have the capability only. No answer in time counts as yes."""
    if capability is None:
        return False
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            for listed in lists:
                with contextlib.suppress(exceptions.MCPError):
                    page = (await listed()).model_dump(include={"resources", "resource_templates", "prompts"})
                    if any(page.values()):
                        return True
    except TimeoutError:
        return True
    return False


def is_wanted(name: str, settings: McpServerConfig) -> bool:
    if settings.include and not any(fnmatchcase(name, pattern) for pattern in settings.include):
        return False
    return not any(fnmatchcase(name, pattern) for pattern in settings.exclude)


def _listed(tool: Any) -> Listed:
    annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    description = tool.description or tool.title or annotations.get("title") or ""
    problem = _schema_problem(schema)
    needs_task = tool.execution is not None and tool.execution.task_support == "required"
    return Listed(tool.name, description, {} if problem else schema, annotations, problem, tool.title or "", needs_task)


def _schema_problem(schema: JsonDict) -> str:
    """Why a schema is too large to read, or empty."""
    if _depth(schema) > _MAX_SCHEMA_DEPTH:
        return f"its schema is nested more than {_MAX_SCHEMA_DEPTH} levels deep"
    size = len(json.dumps(schema))
    if size > _MAX_SCHEMA_BYTES:
        return f"its schema has {size:,} bytes; the limit is {_MAX_SCHEMA_BYTES:,}"
    return ""


def _depth(schema: Any) -> int:
    """Without recursion: it may be deeper than Python's stack."""
    deepest, left = 0, [(schema, 1)]
    while left and deepest <= _MAX_SCHEMA_DEPTH:
        value, depth = left.pop()
        deepest = max(deepest, depth)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left.extend((each, depth + 1) for each in inner)
    return deepest


async def changes(client: mcp.Client) -> AsyncIterator[None]:
    """Yields at every change of a server's lists until the server ends the stream, in newer protocol revisions, where a client
    must subscribe. Raises MCPError for a server that does not support it."""
    if client.protocol_version not in revisions.MODERN_PROTOCOL_VERSIONS:
        return
    pause, has_missed = _FIRST_PAUSE_SECONDS, False
    while True:
        try:
            async with client.listen(
                tools_list_changed=True, resources_list_changed=True, prompts_list_changed=True
            ) as events:
                if has_missed:
                    yield  # changes in between are not reported again
                pause, has_missed = _FIRST_PAUSE_SECONDS, False
                async for _ in events:
                    yield
            return
        except Exception as error:  # a connection breaks in many ways
            if isinstance(error, exceptions.MCPError) and error.code in _REFUSALS:
                raise
        has_missed = True
        await asyncio.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


class Pins(JsonFile):
    """The trusted definitions of one server, by hash."""

    def __init__(self, server: Server, folder: Path | None = None) -> None:
        super().__init__((folder or state_dir() / "mcp") / f"{server.key}.json")

    def review(self, tools: Iterable[Listed]) -> dict[str, str]:
        """Why some tools need a review by you, by name. A new tool that is not suspicious is trusted as it is."""
        known = self.read()
        doubts: dict[str, str] = {}
        new: dict[str, str] = {}
        for tool in tools:
            now = definition_hash(tool)
            if known.get(tool.name) == now:
                continue
            if tool.name in known:
                doubts[tool.name] = "its definition has changed since it was trusted"
            elif why := suspicion(tool):
                doubts[tool.name] = why
            else:
                new[tool.name] = now
        if new:
            with contextlib.suppress(Denied):  # in an agent's own shell nothing becomes trusted for longer
                self.update(new)
        return doubts

    def trust(self, tools: Iterable[Listed]) -> None:
        self.update({tool.name: definition_hash(tool) for tool in tools})


def definition_hash(tool: Listed) -> str:
    whole = json.dumps([tool.name, tool.description, tool.schema, tool.annotations], sort_keys=True)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def suspicion(tool: Listed) -> str:
    """Why you should review a tool before a model sees it; empty if nothing is suspicious."""
    if len(tool.description) > _MAX_DESCRIPTION:
        return f"its description has {len(tool.description):,} characters"
    left: list[Any] = [tool.schema, tool.annotations, tool.description, tool.name]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str) and (found := suspicion_of(value)):
            return f"its definition {found}"
    return ""

"""Serve prompts and resources: skills, stored results and sessions of ours, and what plugins add. Answers as MCP writes them."""

import base64
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import mcp_types
from mcp.shared.exceptions import MCPError
from mcp.shared.uri_template import UriTemplate

from ...app import Handrail
from ...config.paths import state_dir
from ...core.outcome import Outcome, error_of, parsed
from ...errors import HandrailError
from ...plugins.api import Prompt, Resource
from ...store.sessions import SessionStore
from ...tools.skills.library import FILE, Library, Skill, parse, text_of

_MAX_SESSIONS = 50
_MAX_COMPLETIONS = 100
_GAP = re.compile(r"\{(\w+)\}")
_FOR_SKILL = {"name": "task", "description": "What to do with the skill."}
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)


def answer_of(outcome: Outcome, *, has_schema: bool = False) -> mcp_types.CallToolResult:
    """Text, also as data if it is an object; images and audio as such; a failure is marked as an error. A tool with an output
    schema promises data, also where its result is something else."""
    if isinstance(outcome, dict):
        blocks = [block_of(part) for part in outcome["content"]]
        return mcp_types.CallToolResult(content=blocks, structured_content={} if has_schema else None)
    data = _object_in(outcome)
    if data is None and has_schema:
        data = {"content": outcome}
    blocks, is_error = [mcp_types.TextContent(text=outcome)], error_of(outcome) is not None
    return mcp_types.CallToolResult(content=blocks, structured_content=data, is_error=is_error)


def passed_on(outcome: Outcome) -> mcp_types.CallToolResult:
    """The result of another server's tool in the form that its own server gave it: its text as text, its data as data."""
    found = _object_in(outcome) if isinstance(outcome, str) else None
    if found is None or not found.keys() <= {"content", "structured"}:  # it failed, was cut, or is more than text
        return answer_of(outcome)
    text = found.get("content", json.dumps(found.get("structured"), ensure_ascii=False))
    blocks: Any = [mcp_types.TextContent(text=text)]
    return mcp_types.CallToolResult(content=blocks, structured_content=found.get("structured"))


def _object_in(text: str) -> dict[str, Any] | None:
    data = parsed(text)
    return data if isinstance(data, dict) else None


def block_of(part: Any) -> Any:
    """One part of a multimodal result as a content block."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return mcp_types.TextContent(text=str(part.get("text") or ""))
    if kind == "image_url" and (picture := _DATA_URL.fullmatch(str(part.get("image_url", {}).get("url", "")))):
        return mcp_types.ImageContent(data=picture[2], mime_type=picture[1])
    if kind == "input_audio":
        sound = part["input_audio"]
        return mcp_types.AudioContent(data=sound["data"], mime_type=f"audio/{sound.get('format', 'wav')}")
    if kind == "resource":
        return mcp_types.EmbeddedResource.model_validate(part)
    return mcp_types.TextContent(text=json.dumps(part, default=str))


class Offers:
    """What the clients of one server may read. `tools` are the names of those that they may call: what a tool would show
    them is offered with it, and only with it."""

    def __init__(self, app: Handrail, tools: Callable[[], frozenset[str]], *, sessions: bool) -> None:
        self._app, self._tools, self._sessions_too = app, tools, sessions

    @cached_property
    def _store(self) -> SessionStore:
        return SessionStore(state_dir(self._app.config.home) / "sessions.db")

    @property
    def _has_sessions(self) -> bool:
        return self._sessions_too or "session_search" in self._tools()

    def prompts(self) -> dict[str, Prompt]:
        skills = (
            Prompt(each.name, each.header.description, partial(self._skill_text, each.name), (_FOR_SKILL,))
            for each in self._skills()
        )
        return {each.name: each for each in skills} | dict(self._contributed("prompts"))

    def resources(self) -> list[Resource]:
        """Those with an address of their own."""
        found = [each for each in self._known() if not _GAP.search(each.uri)]
        for skill in self._skills():
            uri, about = f"handrail://skills/{skill.name}", skill.header.description
            found.append(Resource(uri, skill.name, self._skill, about, "text/markdown"))
        for each in self._store.recent(limit=_MAX_SESSIONS) if self._has_sessions else ():
            uri, title = f"handrail://sessions/{each.id}", each.title or each.id
            found.append(Resource(uri, title, self._session, each.cwd, "application/json"))
        return found

    def templates(self) -> list[Resource]:
        return [each for each in self._known() if _GAP.search(each.uri)]

    async def read(self, uri: str) -> Any:
        """The contents at an address. Raises MCPError."""
        for resource in self._known():
            if (parts := UriTemplate.parse(resource.uri).match(uri)) is None:
                continue
            try:
                return _contents(uri, resource.mime_type, await _awaited(resource.read(**parts)))
            except HandrailError as error:
                raise _not_found(uri, str(error)) from None
        raise _not_found(uri, "there is no such resource")

    async def get(self, name: str, arguments: Mapping[str, str], client: Any) -> Any:
        """A prompt, filled in. Raises MCPError."""
        if (prompt := self.prompts().get(name)) is None:
            raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown prompt: {name}")
        missing = [each["name"] for each in prompt.arguments if each.get("required") and each["name"] not in arguments]
        if missing:
            raise MCPError(mcp_types.INVALID_PARAMS, f"{name} needs {', '.join(missing)}")
        said = await _awaited(prompt.render(dict(arguments), client))
        if isinstance(said, str):
            said = [{"role": "user", "content": {"type": "text", "text": said}}]
        messages = [mcp_types.PromptMessage(role=each["role"], content=block_of(each["content"])) for each in said]
        return mcp_types.GetPromptResult(description=prompt.description, messages=messages)

    def complete(self, kind: str, name: str, argument: str, begun: str) -> list[str]:
        """The values that an argument of a prompt ("ref/prompt") or a gap of a template may take. Raises MCPError."""
        known: Mapping[str, Prompt | Resource] = {each.uri: each for each in self._known()}
        found = (self.prompts() if kind == "ref/prompt" else known).get(name)
        if found is None:
            raise MCPError(mcp_types.INVALID_PARAMS, f"there is no {name}")
        values = found.complete(argument, begun) if found.complete is not None else ()
        return [each for each in values if each.startswith(begun)][:_MAX_COMPLETIONS]

    def contributed(self) -> tuple[list[str], list[str]]:
        """What plugins offer now."""
        return list(self._contributed("prompts")), list(self._contributed("resources"))

    def _contributed(self, kind: str) -> Mapping[str, Any]:
        plugins = self._app.plugins
        return getattr(plugins.contributions, kind) if plugins is not None else {}

    def _known(self) -> Iterator[Resource]:
        """What plugins add, and templates for what is ours."""
        yield from self._contributed("resources").values()
        if "read_result" in self._tools():
            about = "The whole result of a call that was cut, by the id that the call gave."
            yield Resource("handrail://results/{id}", "result", self._result, about)
        if "skill_view" in self._tools():
            about, names = "A skill: instructions for one kind of task.", self._skill_names
            yield Resource("handrail://skills/{name}", "skill", self._skill, about, "text/markdown", names)
        if self._has_sessions:
            about, ids = "The messages of an earlier session of the agent.", self._session_ids
            yield Resource("handrail://sessions/{id}", "session", self._session, about, "application/json", ids)

    def _skills(self) -> list[Skill]:
        return Library(self._app.config.skills).ready() if "skill_view" in self._tools() else []

    def _skill_names(self, _: str, __: str) -> Sequence[str]:
        return [skill.name for skill in self._skills()]

    def _skill(self, name: str) -> str:
        return text_of(Library(self._app.config.skills).open(name)[1], FILE)

    def _skill_text(self, name: str, arguments: Mapping[str, str], _: Any) -> str:
        _, body = parse(self._skill(name))
        return f"{body}\n\n{arguments['task']}" if arguments.get("task") else body

    def _result(self, id: str) -> str:  # noqa: A002  the gap's name
        assert self._app.runtime.results is not None  # a Handrail's runtime has them
        return self._app.runtime.results.get(id)

    def _session(self, id: str) -> str:  # noqa: A002  the gap's name
        info = self._store.get(id)
        messages = [each.message for each in self._store.messages(info.id)]
        return json.dumps({"id": info.id, "title": info.title, "messages": messages}, ensure_ascii=False)

    def _session_ids(self, _: str, __: str) -> Sequence[str]:
        return [each.id for each in self._store.recent(limit=1000)]


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _contents(uri: str, kind: str, value: str | bytes) -> Any:
    data = {"text": value} if isinstance(value, str) else {"blob": base64.b64encode(value).decode()}
    return mcp_types.ReadResourceResult.model_validate({"contents": [{"uri": uri, "mimeType": kind, **data}]})


def _not_found(uri: str, why: str) -> Exception:
    return MCPError(mcp_types.INVALID_PARAMS, f"Resource not found: {why}", data={"uri": uri})
